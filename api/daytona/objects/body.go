// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"

	"sandpit.dev/fault"
)

// What a request may say of its body in place of the hash.
const (
	unsigned        = "UNSIGNED-PAYLOAD"
	chunked         = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	chunkedTrailer  = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	unsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

	headerCRC32 = "X-Amz-Checksum-Crc32"

	mostChunk = 8 << 20 // of a body that is signed in parts: what is held until its signature is seen
	mostLine  = 4096
)

func changed(format string, args ...any) error {
	return fault.New(fault.Invalid, "the body is not what was signed: %s", fmt.Sprintf(format, args...)).WithRemedy("send it again")
}

// body returns the content that a request brings, and what is asked at its end whether it came unchanged.
func (s *signed) body(r *http.Request) (io.Reader, func() error, error) {
	want := r.Header.Get(headerCRC32)
	switch s.sum {
	case unsigned:
		c := &checked{r: r.Body, crc: crc32.NewIEEE()}
		return c, func() error { return c.crcIs(want) }, nil
	case chunked, chunkedTrailer, unsignedTrailer:
		if s.sum == unsignedTrailer && !strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") {
			return nil, nil, changed("it has no aws-chunked among its encodings")
		}
		in := &chunks{in: bufio.NewReaderSize(r.Body, 64<<10), s: s, last: s.first, signs: s.sum != unsignedTrailer, trailer: s.sum != chunked, want: r.Header.Get("X-Amz-Decoded-Content-Length")}
		c := &checked{r: in, crc: crc32.NewIEEE()}
		return c, func() error {
			if in.crc != "" {
				want = in.crc
			}
			return c.crcIs(want)
		}, nil
	}
	if len(s.sum) != 2*sha256.Size {
		return nil, nil, changed("%s is %.80q", headerSum, s.sum)
	}
	c := &checked{r: r.Body, crc: crc32.NewIEEE(), sum: sha256.New()}
	return c, func() error {
		if got := hex.EncodeToString(c.sum.Sum(nil)); !hmac.Equal([]byte(got), []byte(s.sum)) {
			return changed("its SHA-256 is another one")
		}
		return c.crcIs(want)
	}, nil
}

// checked reads, and adds up what it reads.
type checked struct {
	r   io.Reader
	crc hash.Hash32
	sum hash.Hash // nil: none
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.crc.Write(p[:n])
	if c.sum != nil {
		c.sum.Write(p[:n])
	}
	return n, err
}

func (c *checked) crcIs(want string) error {
	if want == "" {
		return nil
	}
	if got := base64.StdEncoding.EncodeToString(c.crc.Sum(nil)); got != want {
		return changed("its CRC-32 is %s, not %.40q", got, want)
	}
	return nil
}

// chunks reads a body in aws-chunked: each chunk says its size, and where it is signed its signature, which follows from that
// of the one before it. At the end there may be trailers. Nothing of a chunk that is signed is handed on before it was checked.
type chunks struct {
	in      *bufio.Reader
	s       *signed
	last    string // signature before the next chunk
	signs   bool
	trailer bool
	want    string // the size of all, in digits; "": not said

	left int64 // of a chunk that is not signed
	held []byte
	read int64
	over bool
	crc  string // of the trailers
}

func (c *chunks) Read(p []byte) (int, error) {
	for {
		switch {
		case len(c.held) > 0:
			n := copy(p, c.held)
			c.held = c.held[n:]
			return n, nil
		case c.left > 0:
			n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
			if c.left -= int64(n); err != nil {
				return n, unexpected(err)
			}
			if c.left == 0 {
				err = c.newline()
			}
			return n, err
		case c.over:
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
}

// unexpected returns an error of reading a body, io.ErrUnexpectedEOF where the body ended too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *chunks) line() (string, error) {
	text, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(text) > mostLine {
		return "", changed("a line of it is too long")
	}
	if err != nil {
		return "", unexpected(err)
	}
	return string(bytes.TrimRight(text, "\r\n")), nil
}

func (c *chunks) newline() error {
	text, err := c.line()
	if err == nil && text != "" {
		err = changed("a chunk is longer than it says")
	}
	return err
}

// next reads the head of a chunk, and all of one that is signed.
func (c *chunks) next() error {
	head, err := c.line()
	if err != nil {
		return err
	}
	digits, rest, _ := strings.Cut(head, ";")
	size, err := strconv.ParseInt(digits, 16, 64)
	if err != nil || size < 0 {
		return changed("%.40q is no size of a chunk", digits)
	}
	c.read += size
	if !c.signs {
		if c.left = size; size > 0 {
			return nil
		}
		return c.end()
	}
	signature, ok := strings.CutPrefix(rest, "chunk-signature=")
	if !ok || size > mostChunk {
		return changed("a chunk has no signature, or more than %d bytes", mostChunk)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(c.in, data); err != nil {
		return unexpected(err)
	}
	sum, none := sha256.Sum256(data), sha256.Sum256(nil)
	want := c.s.sign(strings.Join([]string{algorithm + "-PAYLOAD", c.s.at, c.s.scope, c.last, hex.EncodeToString(none[:]), hex.EncodeToString(sum[:])}, "\n"))
	if !hmac.Equal([]byte(signature), []byte(want)) {
		return changed("the signature of a chunk is not right")
	}
	c.last, c.held = signature, data
	if size > 0 {
		return c.newline()
	}
	return c.end()
}

// end reads what comes behind the last chunk.
func (c *chunks) end() error {
	if c.want != "" && c.want != strconv.FormatInt(c.read, 10) {
		return changed("it has %d bytes, and was to have %.20s", c.read, c.want)
	}
	c.over = true
	var trailers strings.Builder
	for n := 0; ; n++ {
		text, err := c.line()
		if errors.Is(err, io.ErrUnexpectedEOF) && c.trailer && c.signs {
			return changed("its trailers are not signed")
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // without the last line break
		}
		if err != nil {
			return err
		}
		if n > mostHeaders {
			return changed("it has more than %d trailers", mostHeaders)
		}
		if text == "" {
			if c.trailer && c.signs { // some clients have one before the signature
				continue
			}
			return nil
		}
		name, value, _ := strings.Cut(text, ":")
		switch name = strings.ToLower(name); name {
		case "x-amz-trailer-signature":
			sum := sha256.Sum256([]byte(trailers.String()))
			want := c.s.sign(strings.Join([]string{algorithm + "-TRAILER", c.s.at, c.s.scope, c.last, hex.EncodeToString(sum[:])}, "\n"))
			if !hmac.Equal([]byte(value), []byte(want)) {
				return changed("the signature of its trailers is not right")
			}
			return nil
		case strings.ToLower(headerCRC32):
			c.crc = strings.TrimSpace(value)
		}
		trailers.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
}
