// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Bounds of what a server sends.
const (
	MaxMessage = 8 << 20 // bytes of one message
	maxHeader  = 4 << 10 // bytes of what stands before one
	maxDepth   = 128     // of values within values
)

// readMessage reads one message: its header, and the value behind it, which has at most MaxMessage bytes. What is announced
// takes memory only as it comes.
func readMessage(r *bufio.Reader) ([]byte, error) {
	length := int64(-1)
	for left := maxHeader; ; {
		line, err := r.ReadSlice('\n')
		if left -= len(line); left < 0 || errors.Is(err, bufio.ErrBufferFull) {
			return nil, fmt.Errorf("a header has more than %d bytes", maxHeader)
		}
		if err != nil {
			if len(line) > 0 || left < maxHeader {
				err = noEOF(err)
			}
			return nil, err
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if text == "" {
			break
		}
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return nil, fmt.Errorf("%q is no header", clip(text, 80))
		}
		if !strings.EqualFold(strings.TrimSpace(name), "Content-Length") {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 63)
		if err != nil || length >= 0 {
			return nil, fmt.Errorf("%q is no length, or the second one", clip(text, 80))
		}
		if n > MaxMessage {
			return nil, fmt.Errorf("a message of %d bytes is announced, more than %d", n, MaxMessage)
		}
		length = int64(n)
	}
	if length < 0 {
		return nil, errors.New("a header has no Content-Length")
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, length); err != nil {
		return nil, noEOF(err)
	}
	if d := depth(body.Bytes()); d > maxDepth {
		return nil, fmt.Errorf("a message has values %d deep in values, more than %d", d, maxDepth)
	}
	return body.Bytes(), nil
}

// noEOF makes the end of a stream one that came in the middle.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// depth is how deep values stand in values.
func depth(b []byte) (most int) {
	now, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[', c == '{':
			now++
			most = max(most, now)
		case c == ']', c == '}':
			now--
		}
	}
	return most
}

// frame is a message as it is sent.
func frame(body []byte) []byte {
	return append(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(body)), body...)
}

// clip is the beginning of a text that a server sent, for people: valid, and at most n bytes.
func clip(s string, n int) string {
	if len(s) > n {
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
