//go:build !linux

package scenario

func adoptOrphans() {}

func children(int) []int { return nil }

func descendants(int) []int { return nil }

func killAll([]int) {}

func hasSetting(int, string) bool { return false }
