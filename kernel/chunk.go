// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"strconv"
)

// Bounds of the protocol, in bytes.
const (
	// maxChunk is the content of one chunk; all of it fits into an atomic write.
	maxChunk = 4096
	// MaxMessage is one message: a cell's results, as JSON, and room for what stands around them.
	MaxMessage = 16 << 20
)

// sizeLen is what stands between a marker and a chunk's content.
const sizeLen = 1 + 4

// marker is what begins a chunk of the context with a token.
func marker(token string) []byte { return []byte("\x1f" + token + ":") }

// formatError is a stream that breaks the protocol.
type formatError string

func (e formatError) Error() string { return "kernel protocol: " + string(e) }

// splitter takes messages out of one stream. What it holds is bounded by a chunk and
// a message.
type splitter struct {
	mark    []byte
	hold    []byte // the begin of a chunk, or of what may be one
	message []byte // chunks of a message that is not whole yet
	begun   bool   // a message has come
}

// clean reports whether everything that came was passed on.
func (s *splitter) clean() bool { return len(s.hold) == 0 && len(s.message) == 0 }

// feed takes the next bytes of the stream and calls text for what is not of a
// message, and message for each whole one, in order. What they are given holds until they
// return. After an error the stream is of no use.
func (s *splitter) feed(data []byte, text func([]byte), message func([]byte) error) error {
	if len(s.hold) > 0 {
		data = append(s.hold, data...)
		s.hold = nil
	}
	for len(data) > 0 {
		i := bytes.Index(data, s.mark)
		if i < 0 {
			keep := s.overlap(data)
			if keep < len(data) {
				text(data[:len(data)-keep])
			}
			s.hold = append([]byte(nil), data[len(data)-keep:]...)
			return nil
		}
		if i > 0 {
			text(data[:i])
			data = data[i:]
		}
		head := len(s.mark) + sizeLen
		if len(data) < head {
			break
		}
		n, err := strconv.ParseUint(string(data[len(s.mark)+1:head]), 16, 16)
		if err != nil || n > maxChunk {
			return formatError("a chunk's length is none, or over its bound")
		}
		if len(data) < head+int(n) {
			break
		}
		if err := s.chunk(data[len(s.mark)], data[head:head+int(n)], message); err != nil {
			return err
		}
		data = data[head+int(n):]
	}
	s.hold = append([]byte(nil), data...)
	return nil
}

func (s *splitter) chunk(kind byte, content []byte, message func([]byte) error) error {
	if len(s.message)+len(content) > MaxMessage {
		return formatError("a message is over its bound")
	}
	switch kind {
	case '+':
		s.message = append(s.message, content...)
		return nil
	case '.':
		s.begun = true
		whole := content
		if len(s.message) > 0 {
			whole = append(s.message, content...)
			s.message = nil
		}
		return message(whole)
	}
	return formatError("a chunk is of no known kind")
}

// overlap is how many bytes at the end of data may be the begin of a marker.
func (s *splitter) overlap(data []byte) int {
	tail := data[max(0, len(data)-len(s.mark)+1):]
	for i := bytes.IndexByte(tail, s.mark[0]); i >= 0; {
		if bytes.HasPrefix(s.mark, tail[i:]) {
			return len(tail) - i
		}
		next := bytes.IndexByte(tail[i+1:], s.mark[0])
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return 0
}

// rest passes on what was held back, when the stream has ended.
func (s *splitter) rest(text func([]byte)) {
	if len(s.hold) > 0 {
		text(s.hold)
		s.hold = nil
	}
}
