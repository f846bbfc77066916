// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// Version is the protocol's version, sent in Hello.
const Version = 1

// Magic begins the payload of Hello; the version is the byte after it.
const Magic = "sbpt"

// Bounds of a frame's payload, in bytes.
const (
	MaxJSON = 1 << 20
	MaxData = 64 << 10
)

// HeaderLen is the length of what stands before each payload.
const HeaderLen = 4

// Type is a frame's first byte.
type Type byte

// The types of frames.
const (
	Hello Type = 0x01 // client: magic and version
	Call  Type = 0x02 // client: a Request as JSON
	Data  Type = 0x03 // either: raw bytes, of stdin or of a file
	End   Type = 0x04 // client, and with OpDial either: all Data was sent
	Told  Type = 0x05 // client, with OpRunIn: how the command ended; a Result as JSON

	Reply   Type = 0x10 // server: the call was taken; JSON
	Failure Type = 0x11 // server: it failed, and this is the last frame; an Error as JSON
	Item    Type = 0x12 // server: a part of a list; JSON
	Done    Type = 0x13 // server: it is complete, and this is the last frame; JSON

	LogStart  Type = 0x20
	LogStdout Type = 0x21
	LogStderr Type = 0x22
	LogExit   Type = 0x23
	LogSeal   Type = 0x24
	LogFloor  Type = 0x25 // on disk only
)

// Limit is the longest payload of a frame of this type.
func (t Type) Limit() int {
	switch t {
	case Data:
		return MaxData
	case LogStdout, LogStderr:
		return logPrefix + MaxData
	case LogStart, LogExit:
		return logPrefix + MaxJSON
	}
	return MaxJSON
}

// Ignorable reports whether a reader that does not know the type may skip it.
func (t Type) Ignorable() bool { return t >= 0x80 }

// FormatError is a frame, or the content of one, that breaks the protocol.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "agent protocol: " + e.Reason }

// PutHeader writes the header of a frame with a payload of n bytes to b, which
// has room for [HeaderLen].
func PutHeader(b []byte, t Type, n int) {
	b[0], b[1], b[2], b[3] = byte(t), byte(n>>16), byte(n>>8), byte(n)
}

// Append appends a frame to dst.
func Append(dst []byte, t Type, payload []byte) []byte {
	n := len(payload)
	dst = append(dst, byte(t), byte(n>>16), byte(n>>8), byte(n))
	return append(dst, payload...)
}

// AppendJSON appends a frame whose payload is v as JSON. It fails for what has
// no JSON, and for more than the type's limit.
func AppendJSON(dst []byte, t Type, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return dst, err
	}
	if len(b) > t.Limit() {
		return dst, &FormatError{"a message of " + strconv.Itoa(len(b)) + " bytes is over the bound of " + strconv.Itoa(t.Limit())}
	}
	return Append(dst, t, b), nil
}

// AppendHello appends the frame that begins every connection.
func AppendHello(dst []byte) []byte {
	return Append(dst, Hello, append([]byte(Magic), Version))
}

// CheckHello reads the payload of a Hello and gives the client's version.
func CheckHello(p []byte) (version int, err error) {
	if len(p) < len(Magic)+1 || string(p[:len(Magic)]) != Magic {
		return 0, &FormatError{"the connection does not begin with a hello"}
	}
	return int(p[len(Magic)]), nil
}

// Reader takes frames off a stream. It reads ahead. An error of the stream
// itself (a deadline, for example) loses nothing: Next may be called again and
// goes on where it was.
type Reader struct {
	src  io.Reader
	buf  []byte
	r, w int // buf[r:w] is read and not yet taken
	took int // length of the frame given out last, to be skipped
}

// NewReader makes a reader of frames off src.
func NewReader(src io.Reader) *Reader { return &Reader{src: src} }

const firstBuffer = 1 << 10

// Next returns the next frame. The payload holds until the next call. At the end
// of the stream the error is io.EOF between two frames and
// io.ErrUnexpectedEOF within one; a frame over its bound is a [FormatError],
// after which the stream is of no use.
func (r *Reader) Next() (Type, []byte, error) {
	r.r += r.took
	r.took = 0
	if err := r.fill(HeaderLen); err != nil {
		return 0, nil, err
	}
	h := r.buf[r.r : r.r+HeaderLen]
	t := Type(h[0])
	n := int(binary.BigEndian.Uint32(h) & 0xff_ff_ff)
	if n > t.Limit() {
		return 0, nil, &FormatError{"a frame of type " + strconv.Itoa(int(t)) + " claims " + strconv.Itoa(n) + " bytes, over the bound of " + strconv.Itoa(t.Limit())}
	}
	if err := r.fill(HeaderLen + n); err != nil {
		return 0, nil, err
	}
	r.took = HeaderLen + n
	return t, r.buf[r.r+HeaderLen : r.r+HeaderLen+n], nil
}

// fill reads until n bytes are at hand. The buffer grows with what arrives,
// not with what a header claims.
func (r *Reader) fill(n int) error {
	for empty := 0; r.w-r.r < n; {
		if r.r == r.w {
			r.r, r.w = 0, 0
		}
		if r.r > 0 && r.w == len(r.buf) {
			r.w = copy(r.buf, r.buf[r.r:r.w])
			r.r = 0
		}
		if r.w == len(r.buf) {
			size := max(2*len(r.buf), firstBuffer)
			if size > n && n > len(r.buf) {
				size = max(n, firstBuffer)
			}
			grown := make([]byte, size)
			r.w = copy(grown, r.buf[r.r:r.w])
			r.r, r.buf = 0, grown
		}
		m, err := r.src.Read(r.buf[r.w:])
		r.w += m
		if r.w-r.r >= n {
			return nil
		}
		switch {
		case errors.Is(err, io.EOF) && r.w == r.r:
			return io.EOF
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
		if empty++; m > 0 {
			empty = 0
		} else if empty > 100 {
			return io.ErrNoProgress
		}
	}
	return nil
}

// Decode reads a JSON payload into v. Fields that v does not have are ignored.
func Decode(payload []byte, v any) error {
	if len(payload) == 0 {
		return nil
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return &FormatError{"broken JSON: " + err.Error()}
	}
	return nil
}
