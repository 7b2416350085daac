package mask

const (
	MaxEscaped = maxEscaped
	MaxForeign = maxForeign
)
