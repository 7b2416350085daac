package yamltext

import (
	"fmt"
	"unicode/utf8"
)

func tooDeep(line, column int) error {
	return &Error{line, column, fmt.Sprintf("values are nested more than %d levels deep", MaxLevels)}
}

func tooManyNodes(line, column int) error {
	return &Error{line, column, fmt.Sprintf("there are more than %d values; split the text", MaxNodes)}
}

// measure returns an error for a text of too many nodes or levels, before a parser
// makes a node of anything. It follows the tokens of the parser's scanner, and keeps
// none of them. Where it can't tell it counts too many rather than too few; the
// exact count is that of builder.
func (m *meter) measure() error {
	for m.skipToToken() {
		if m.flow == nil {
			m.unindent()
		}
		line, column := m.line, m.column
		if column == 1 && m.flow == nil && m.text[m.at] == '%' {
			return &Error{line, column, "this is a directive, which is not read here; remove the line"}
		}
		m.token()
		if len(m.indents)+len(m.flow) > MaxLevels {
			return tooDeep(line, column)
		}
		if m.nodes > MaxNodes {
			return tooManyNodes(line, column)
		}
	}
	return nil
}

func newMeter(text []byte) *meter {
	return &meter{text: text, line: 1, column: 1, nodes: 1, keyAllowed: true}
}

// meter counts the nodes of a text. Columns count characters from 1.
type meter struct {
	text         []byte
	at           int
	line, column int
	nodes        int

	flow    []flowLevel // the open [ and {
	indents []int       // the columns of the open block collections

	// What may be the key of a block mapping: where it begins, and whether the next
	// token may be one.
	keyAllowed         bool
	keyLine, keyColumn int

	questions []int // where a ? is part of a plain scalar inside [] or {}
	keyAlone  error // of the first entry inside {} without a colon
}

type flowLevel struct {
	mapping  bool
	entered  bool  // the entry has begun
	keyAlone error // if the entry ends without a colon
}

// token counts the token that begins here, and skips it.
func (m *meter) token() {
	c := m.text[m.at]
	switch {
	case m.column == 1 && m.isDocumentMarker():
		m.skip(3)
		m.indents, m.flow, m.keyAllowed = nil, nil, false
		m.nodes++
	case c == '[' || c == '{':
		m.begin()
		m.flow = append(m.flow, flowLevel{mapping: c == '{'})
		m.skip(1)
	case c == ']' || c == '}':
		m.endEntry()
		if len(m.flow) > 0 {
			m.flow = m.flow[:len(m.flow)-1]
		}
		if len(m.flow) == 0 {
			m.flow = nil
		}
		m.keyAllowed = false
		m.skip(1)
	case c == ',':
		m.endEntry()
		m.skip(1)
	case c == '-' && m.blankAt(m.at+1):
		m.indent(m.column)
		m.nodes++
		m.keyAllowed = true
		m.skip(1)
	case c == '?' && (m.flow != nil || m.blankAt(m.at+1)):
		m.enter()
		m.indent(m.column)
		m.nodes += 2
		m.keyAllowed = true
		m.skip(1)
	case c == ':' && (m.flow != nil || m.blankAt(m.at+1)):
		m.colon()
	case c == '*' || c == '&':
		m.begin()
		for m.skip(1); m.at < len(m.text) && isWord(m.text[m.at]); {
			m.skip(1)
		}
	case c == '!':
		m.begin()
		for m.at < len(m.text) && !m.blankAt(m.at) && (m.flow == nil || !isFlowIndicator(m.text[m.at])) {
			m.skip(1)
		}
	case (c == '|' || c == '>') && m.flow == nil:
		m.begin()
		m.skipBlock()
		m.keyAllowed = true
	case c == '\'' || c == '"':
		m.begin()
		m.skipQuoted(c)
	default:
		m.begin()
		m.skipPlain()
	}
}

func (m *meter) top() *flowLevel {
	if len(m.flow) == 0 {
		return nil
	}
	return &m.flow[len(m.flow)-1]
}

// enter counts the entry of a flow collection that begins here: a value, or a key
// and its value.
func (m *meter) enter() {
	top := m.top()
	if top == nil || top.entered {
		return
	}
	top.entered = true
	m.nodes++
	if top.mapping {
		m.nodes++
		top.keyAlone = &Error{m.line, m.column, "this key has no value; put the text that it is a part of in quotes, or write a colon, a space and the value"}
	}
}

// endEntry ends an entry of a flow collection. The parser takes {a: b, c} for
// {a: b, c: null}, a value that nobody wrote.
func (m *meter) endEntry() {
	if top := m.top(); top != nil {
		if m.keyAlone == nil {
			m.keyAlone = top.keyAlone
		}
		top.entered, top.keyAlone = false, nil
	}
}

// begin notes that a value begins here, which may be a key.
func (m *meter) begin() {
	m.enter()
	if m.flow == nil && m.keyAllowed {
		m.keyLine, m.keyColumn = m.line, m.column
		m.keyAllowed = false
	}
}

// colon counts a key and its value.
func (m *meter) colon() {
	m.enter()
	if top := m.top(); top == nil {
		m.nodes += 2
		column := m.column
		if m.keyLine == m.line {
			column = m.keyColumn
		} else {
			m.keyAllowed = true
		}
		m.indent(column)
		m.keyLine = 0
	} else if top.keyAlone = nil; !top.mapping {
		m.nodes += 3
	}
	m.skip(1)
}

// indent opens a block collection if there is none at the column.
func (m *meter) indent(column int) {
	if m.flow == nil && m.indentation() < column {
		m.indents = append(m.indents, column)
	}
}

func (m *meter) indentation() int {
	if len(m.indents) == 0 {
		return 0
	}
	return m.indents[len(m.indents)-1]
}

// unindent closes the block collections that end before this column.
func (m *meter) unindent() {
	for m.indentation() > m.column {
		m.indents = m.indents[:len(m.indents)-1]
	}
}

// skipToToken skips spaces, line breaks and comments, and reports whether there is
// a token.
func (m *meter) skipToToken() bool {
	for m.at < len(m.text) {
		switch n := m.breakAt(m.at); {
		case n > 0:
			m.newLine(n)
			if m.flow == nil {
				m.keyAllowed = true
			}
		case m.text[m.at] == ' ' || m.text[m.at] == '\t':
			m.skip(1)
		case m.text[m.at] == '#':
			m.skipLine()
		default:
			return true
		}
	}
	return false
}

// skipQuoted skips a scalar in quotes.
func (m *meter) skipQuoted(quote byte) {
	for m.skip(1); m.at < len(m.text); {
		switch c := m.text[m.at]; {
		case c == quote && quote == '\'' && m.at+1 < len(m.text) && m.text[m.at+1] == '\'':
			m.skip(2)
		case c == quote:
			m.skip(1)
			return
		case c == '\\' && quote == '"' && m.at+1 < len(m.text) && m.breakAt(m.at+1) == 0:
			m.skip(2)
		default:
			m.skipAny()
		}
	}
}

// skipPlain skips a scalar without quotes, which may have several lines.
func (m *meter) skipPlain() {
	indent := m.indentation() + 1
	for m.at < len(m.text) {
		if m.column == 1 && m.isDocumentMarker() || m.text[m.at] == '#' {
			return
		}
		for m.at < len(m.text) && !m.blankAt(m.at) {
			c := m.text[m.at]
			if c == ':' && m.blankAt(m.at+1) || m.flow != nil && isFlowIndicator(c) {
				return
			}
			if c == '?' && m.flow != nil {
				m.questions = append(m.questions, m.at)
			}
			m.skip(1)
		}
		for m.at < len(m.text) && m.blankAt(m.at) {
			if n := m.breakAt(m.at); n > 0 {
				m.newLine(n)
				if m.flow == nil {
					m.keyAllowed = true
				}
			} else {
				m.skip(1)
			}
		}
		if m.flow == nil && m.column < indent {
			return
		}
	}
}

// skipBlock skips a scalar after | or >.
func (m *meter) skipBlock() {
	m.skip(1)
	content := 0 // the column of the content, or 0 while it is not known
	for m.at < len(m.text) && !m.blankAt(m.at) {
		if c := m.text[m.at]; c >= '1' && c <= '9' {
			content = m.indentation() + int(c-'0')
			if m.indentation() == 0 {
				content++
			}
		}
		m.skip(1)
	}
	m.skipLine()
	if n := m.breakAt(m.at); n > 0 {
		m.newLine(n)
	}
	for m.skipBlockBreaks(&content); m.column == content && m.at < len(m.text); m.skipBlockBreaks(&content) {
		m.skipLine()
		if n := m.breakAt(m.at); n > 0 {
			m.newLine(n)
		}
	}
}

// skipBlockBreaks skips the indentation and the blank lines before a line of
// content. The first such line gives the column of the content.
func (m *meter) skipBlockBreaks(content *int) {
	deepest := 1
	for {
		for m.at < len(m.text) && m.text[m.at] == ' ' && (*content == 0 || m.column < *content) {
			m.skip(1)
		}
		deepest = max(deepest, m.column)
		n := m.breakAt(m.at)
		if n == 0 {
			break
		}
		m.newLine(n)
	}
	if *content == 0 {
		*content = max(deepest, m.indentation()+1, 2)
	}
}

func (m *meter) skipLine() {
	for m.at < len(m.text) && m.breakAt(m.at) == 0 {
		m.skip(1)
	}
}

// skip skips bytes that are no line breaks.
func (m *meter) skip(n int) {
	for ; n > 0 && m.at < len(m.text); n-- {
		if utf8.RuneStart(m.text[m.at]) {
			m.column++
		}
		m.at++
	}
}

// skipAny skips a byte or a line break.
func (m *meter) skipAny() {
	if n := m.breakAt(m.at); n > 0 {
		m.newLine(n)
		return
	}
	m.skip(1)
}

func (m *meter) newLine(bytes int) {
	m.at += bytes
	m.line, m.column = m.line+1, 1
}

// breakAt returns the length of the line break at i, or 0. As for the parser, NEL,
// LS and PS are line breaks too.
func (m *meter) breakAt(i int) int {
	if i >= len(m.text) {
		return 0
	}
	switch c := m.text[i]; {
	case c == '\n':
		return 1
	case c == '\r':
		if i+1 < len(m.text) && m.text[i+1] == '\n' {
			return 2
		}
		return 1
	case c == 0xc2 && i+1 < len(m.text) && m.text[i+1] == 0x85:
		return 2
	case c == 0xe2 && i+2 < len(m.text) && m.text[i+1] == 0x80 && m.text[i+2]&^1 == 0xa8:
		return 3
	}
	return 0
}

// blankAt reports whether there is a space, a tab, a line break or the end at i.
func (m *meter) blankAt(i int) bool {
	return i >= len(m.text) || m.text[i] == ' ' || m.text[i] == '\t' || m.text[i] == 0 || m.breakAt(i) > 0
}

func (m *meter) isDocumentMarker() bool {
	if m.at+3 > len(m.text) || !m.blankAt(m.at+3) {
		return false
	}
	marker := string(m.text[m.at : m.at+3])
	return marker == "---" || marker == "..."
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '-'
}

func isFlowIndicator(c byte) bool {
	return c == ',' || c == '[' || c == ']' || c == '{' || c == '}'
}
