// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package deep

// escaped is what the beginning of a text may be read as: characters, by the length of what
// stands for each. more: the text ends before it is clear whether there are others.
type escaped struct {
	chars [maxReadings]byte
	ends  [maxReadings]uint8
	n     int
	more  bool
}

// Bounds of what stands for one character.
const (
	maxReadings = 8
	maxEscape   = 32 // bytes, without those of NUL that UTF-16 and UTF-32 have between
	maxNested   = 3  // times that it is escaped again
	maxZeros    = 3  // NULs between two bytes of ASCII, in UTF-32
)

// beginsEscape reports whether an escaped character may begin with c.
func beginsEscape(c byte) bool {
	switch c {
	case '%', '\\', '&', '=', '+':
		return true
	}
	return false
}

// unescape reads what b begins with as an escaped character: percent-encoded, of JSON and most
// languages, of HTML, of quoted-printable, each also where it was escaped once more in the same way.
// The space between NULs is read over.
func unescape(b []byte) (e escaped) {
	if len(b) == 0 || !beginsEscape(b[0]) {
		return e
	}
	r := unescaper{text: b[:min(len(b), maxEscape)], whole: len(b) > maxEscape}
	if len(b) > 1 && b[1] == 0 { // only then is it in UTF-16 or UTF-32
		r.narrow(b)
		return r.out
	}
	r.read()
	return r.out
}

// narrow reads what has NULs between its characters.
func (r *unescaper) narrow(b []byte) {
	var (
		joined [maxEscape]byte
		ends   [maxEscape]uint8
	)
	r.text, r.whole = joined[:0], false
	gap := 0
	for i, c := range b {
		if len(r.text) == maxEscape || gap > maxZeros {
			r.whole = true
			break
		}
		if c == 0 {
			gap++
			continue
		}
		gap = 0
		ends[len(r.text)] = uint8(i + 1)
		r.text = append(r.text, c)
	}
	r.read()
	for i := range r.out.n {
		r.out.ends[i] = ends[r.out.ends[i]-1]
	}
}

func (r *unescaper) read() {
	switch r.text[0] {
	case '+':
		r.out.add(' ', 1)
	case '=':
		r.hex(1, 2, 2)
	case '%':
		at := 1
		for range maxNested {
			r.hex(at, 2, 2)
			if !r.has(at, "25") {
				break
			}
			at += 2
		}
	case '\\':
		r.backslash()
	case '&':
		r.entity()
	}
}

func (e *escaped) add(c byte, end int) {
	if e.n < maxReadings {
		e.chars[e.n], e.ends[e.n] = c, uint8(end)
		e.n++
	}
}

// unescaper reads one escaped character.
type unescaper struct {
	text  []byte
	whole bool // more than text could not matter
	out   escaped
}

// at returns a byte of the text, and false where it has ended.
func (r *unescaper) at(i int) (byte, bool) {
	if i < len(r.text) {
		return r.text[i], true
	}
	r.out.more = r.out.more || !r.whole
	return 0, false
}

// has reports whether the text goes on with want, in any case.
func (r *unescaper) has(i int, want string) bool {
	for k := range len(want) {
		if c, ok := r.at(i + k); !ok || lower(c) != want[k] {
			return false
		}
	}
	return true
}

// digits reads the digits of a number to the base, at most so many.
func (r *unescaper) digits(i, base, most int) (value uint64, end int) {
	end = i
	for end < i+most {
		c, ok := r.at(end)
		if !ok {
			break
		}
		d := digit(c)
		if d >= base {
			break
		}
		value = value*uint64(base) + uint64(d)
		end++
	}
	return value, end
}

func digit(c byte) int {
	switch c = lower(c); {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return 16
}

// hex reads a number of so many digits as a character.
func (r *unescaper) hex(i, least, most int) {
	if v, end := r.digits(i, 16, most); end-i >= least && v < 256 {
		r.out.add(byte(v), end)
	}
}

const maxDigits = 10 // of a number with zeros before it

func (r *unescaper) backslash() {
	n := 0 // backslashes
	for n < 1<<maxNested {
		if c, ok := r.at(n); !ok || c != '\\' {
			break
		}
		n++
	}
	for _, k := range []int{2, 4, 8} {
		if k <= n {
			r.out.add('\\', k)
		}
	}
	c, ok := r.at(n)
	if !ok {
		return
	}
	switch {
	case c == '\\': // too many
	case c == 'u' || c == 'U' || c == 'x' || c == 'X':
		if brace, _ := r.at(n + 1); brace == '{' {
			v, end := r.digits(n+2, 16, maxDigits)
			if closing, _ := r.at(end); closing == '}' && end > n+2 && v < 256 {
				r.out.add(byte(v), end+1)
			}
			return
		}
		width := 2
		if lower(c) == 'u' {
			width = 4
		}
		if c == 'U' {
			width = 8
		}
		r.hex(n+1, width, width)
	case '0' <= c && c <= '7':
		for width := 4; width > 0; width-- { // sh writes a 0 before the three digits
			if v, end := r.digits(n, 8, width); end == n+width && v < 256 {
				r.out.add(byte(v), end)
			}
		}
	case c == 'n':
		r.out.add('\n', n+1)
	case c == 'r':
		r.out.add('\r', n+1)
	case c == 't':
		r.out.add('\t', n+1)
	case ' ' <= c && c < 0x7f && !('a' <= lower(c) && lower(c) <= 'z') && !('0' <= c && c <= '9'):
		r.out.add(c, n+1)
	}
}

func (r *unescaper) entity() {
	at := 1
	for range maxNested {
		if !r.has(at, "amp;") {
			break
		}
		at += len("amp;")
		r.out.add('&', at)
	}
	if c, ok := r.at(at); !ok || c != '#' {
		r.named(at)
		return
	}
	at++
	base := 10
	if c, _ := r.at(at); lower(c) == 'x' {
		base = 16
		at++
	}
	v, end := r.digits(at, base, maxDigits)
	if c, _ := r.at(end); c == ';' && end > at && v < 256 {
		r.out.add(byte(v), end+1)
	}
}

// named reads an entity by its name.
func (r *unescaper) named(at int) {
	var name [8]byte
	for i := range name {
		c, ok := r.at(at + i)
		if !ok {
			return
		}
		if c == ';' {
			if c := entity(string(name[:i])); c != 0 {
				r.out.add(c, at+i+1)
			}
			return
		}
		name[i] = lower(c)
	}
}

func entity(name string) byte {
	switch name {
	case "quot":
		return '"'
	case "lt":
		return '<'
	case "gt":
		return '>'
	case "apos":
		return '\''
	case "sol":
		return '/'
	case "bsol":
		return '\\'
	case "plus":
		return '+'
	case "equals":
		return '='
	case "lowbar":
		return '_'
	case "period":
		return '.'
	case "comma":
		return ','
	case "colon":
		return ':'
	case "semi":
		return ';'
	case "commat":
		return '@'
	case "num":
		return '#'
	case "excl":
		return '!'
	case "quest":
		return '?'
	case "dollar":
		return '$'
	case "percnt":
		return '%'
	case "ast":
		return '*'
	case "lpar":
		return '('
	case "rpar":
		return ')'
	case "lbrack", "lsqb":
		return '['
	case "rbrack", "rsqb":
		return ']'
	case "lbrace", "lcub":
		return '{'
	case "rbrace", "rcub":
		return '}'
	case "verbar", "vert":
		return '|'
	case "hat":
		return '^'
	case "grave":
		return '`'
	case "newline":
		return '\n'
	case "tab":
		return '\t'
	}
	return 0
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
