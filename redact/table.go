// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redact

// cell is what the table says of one spelling at one place.
type cell uint8

const (
	yes cell = iota
	slow
	rare
	bare
	early
	part
)

// reasons say why a place does not mask a spelling.
var reasons = [...]string{
	slow:  "only the deep search finds it, which takes 10 to 100 times as long as the exact one",
	rare:  "rare, and each value would take half as much memory again",
	bare:  "a value that is bound to hosts has no line ends",
	early: "text is masked there before it is cut",
	part:  "a part of a value is like any other text",
}

// row is a spelling, and where it is masked.
type row struct {
	text string
	at   [places]cell
	// forms are the texts that the exact search looks for, nil where it looks for none but
	// the value itself.
	forms func(value string) []string
	least int // bytes of a form that streams are searched for
	most  int // bytes of a value of whose forms streams are searched for
}

// Bounds of what the exact search looks for.
const (
	minForm    = 4       // bytes: what is shorter is in any text
	minCoded   = 8       // bytes of a form that may be anything, as base64
	unbounded  = 1 << 20 // more bytes than a value has
	maxEncoded = 1 << 10 // bytes of a value that streams are searched for in base64, and
	maxRare    = 256     // in other spellings: each byte of a form takes 24 bytes of memory
	maxWhole   = 4 << 10 // bytes of a value that whole texts are searched for in all spellings
	maxGrowth  = 2       // times a value that a form is long in a stream,
	maxShort   = 2 << 10 // or bytes
)

// table says what is masked where, and how the exact search finds it. The cells of a row
// are those of commands, code, records, log and bound hosts.
var table = [spellings]row{
	Plain:          {text: "as it is"},
	Trimmed:        {"without the line ends that it ends with", [places]cell{Echo: bare}, trimmed, minForm, unbounded},
	Terminal:       {"with CR LF for its line ends, as a terminal writes them", [places]cell{Echo: bare}, terminal, minForm, unbounded},
	Case:           {"in lower or upper case", [places]cell{}, cases, minCoded, maxRare},
	MixedCase:      {"with some letters in the other case", [places]cell{slow, slow, slow, slow, yes}, nil, 0, 0},
	Broken:         {"broken into lines", [places]cell{slow, slow, slow, slow, yes}, nil, 0, 0},
	Quoted:         {"quoted, as in JSON, Go and most languages", [places]cell{}, quoted, minForm, unbounded},
	QuotedASCII:    {"quoted with nothing but ASCII left", [places]cell{}, quotedASCII, minForm, maxRare},
	Shell:          {"quoted for a shell", [places]cell{}, shell, minForm, maxRare},
	HTML:           {"escaped for HTML", [places]cell{}, escapedHTML, minForm, maxRare},
	Percent:        {"percent-encoded as a part of a URL", [places]cell{}, percent, minForm, maxRare},
	Escaped:        {"each character escaped: percent-encoded, of JSON, shells and other languages, HTML, quoted-printable", [places]cell{slow, slow, slow, slow, yes}, nil, 0, 0},
	Nested:         {"escaped up to three times in the same way", [places]cell{slow, slow, slow, slow, yes}, nil, 0, 0},
	Hex:            {"in hexadecimal", [places]cell{}, hexadecimal, minCoded, maxRare},
	HexList:        {"in hexadecimal with separators, or as a list of numbers", [places]cell{slow, slow, slow, slow, yes}, nil, 0, 0},
	Base64:         {"in base64 of either alphabet, from any byte on", [places]cell{}, base64Cores, minCoded, maxEncoded},
	Base64Lines:    {"in base64 alone, in lines of 64 or 76", [places]cell{}, base64Lines, minCoded, maxEncoded},
	Base64AnyLines: {"in base64 among other bytes, in lines of any length", [places]cell{slow, slow, slow, slow, yes}, nil, 0, 0},
	Base64Twice:    {"in base64 of base64", [places]cell{rare, rare, rare, rare, yes}, nil, 0, 0},
	Base32:         {"in base32", [places]cell{rare, rare, rare, rare, yes}, nil, 0, 0},
	Wide:           {"in UTF-16 or UTF-32, and UTF-16 in base64 or hexadecimal", [places]cell{rare, rare, rare, rare, yes}, nil, 0, 0},
	Cut:            {"cut off, with … behind it", [places]cell{early, early, yes, yes, yes}, nil, 0, 0},
	Half:           {"its first half", [places]cell{part, part, part, part, yes}, nil, 0, 0},
	Slice:          {"its second half, or less than half", [places]cell{part, part, part, part, part}, nil, 0, 0},
}
