package rawjson

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// UnquoteExact decodes a valid JSON string as Unquote does, but keeps what is not
// Unicode, so texts that differ stay different: bytes that are not UTF-8 as they
// are, and the escape of half a surrogate pair as the three bytes that UTF-8 would
// have for it. Unquote replaces all of these by U+FFFD.
func UnquoteExact(raw []byte) string {
	text := raw[1 : len(raw)-1]
	exact := make([]byte, 0, len(text))
	for len(text) > 0 {
		if text[0] != '\\' {
			exact, text = append(exact, text[0]), text[1:]
			continue
		}
		if text[1] != 'u' {
			exact, text = append(exact, Unquote(`"`+string(text[:2])+`"`)...), text[2:]
			continue
		}
		unit := codeUnit(text)
		text = text[6:]
		if pair := utf16.DecodeRune(unit, codeUnit(text)); pair != utf8.RuneError {
			unit, text = pair, text[6:]
		}
		if utf16.IsSurrogate(unit) {
			exact = append(exact, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F)
			continue
		}
		exact = utf8.AppendRune(exact, unit)
	}
	return string(exact)
}

// codeUnit returns the UTF-16 code unit of the \u escape that text begins with, or
// else -1.
func codeUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
