// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	v1 "sandpit.dev/api/v1"
)

// frameReader reads a stream of frames, see [v1.FramesType].
type frameReader struct {
	r     *bufio.Reader // for small frames: large ones go past its buffer
	reuse bool
	buf   []byte // of the last output; nil: it is not used again
}

// newFrameReader returns a reader of frames. With reuse the data of output holds until the next
// call of next only.
func newFrameReader(r io.Reader, reuse bool) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 16<<10), reuse: reuse}
}

// next returns the next event; output is an event, too. At the end of the stream the error is
// io.EOF, and within a frame io.ErrUnexpectedEOF.
func (f *frameReader) next() (event, error) {
	for {
		var head [4]byte
		if _, err := io.ReadFull(f.r, head[:]); err != nil {
			return event{}, err
		}
		size := binary.BigEndian.Uint32(head[:])
		switch {
		case size == 0:
			continue
		case size > maxOutputMessage:
			return event{}, fmt.Errorf("a frame has %d bytes, more than %d", size, maxOutputMessage)
		}
		n := int(size)
		kind, err := f.r.ReadByte()
		if err != nil {
			return event{}, unexpected(err)
		}
		switch {
		case kind == 0:
			return f.event(n - 1)
		case kind == 1 || kind == 2:
			if n < v1.OutputHeader {
				return event{}, errors.New("a frame of output is too short")
			}
			return f.output(kind, n-1)
		}
		if _, err := f.r.Discard(n - 1); err != nil { // of a newer server
			return event{}, unexpected(err)
		}
	}
}

func (f *frameReader) output(kind byte, n int) (event, error) {
	var head [v1.OutputHeader - 1]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return event{}, unexpected(err)
	}
	ev := event{
		name: v1.StreamStdout, id: int64(binary.BigEndian.Uint64(head[:])),
		at: time.Unix(0, int64(binary.BigEndian.Uint64(head[8:]))),
	}
	if n -= len(head); n > cap(f.buf) || !f.reuse {
		f.buf = make([]byte, n)
	}
	ev.data = f.buf[:n]
	if kind == 2 {
		ev.name = v1.StreamStderr
	}
	_, err := io.ReadFull(f.r, ev.data)
	return ev, unexpected(err)
}

func (f *frameReader) event(n int) (event, error) {
	data := make([]byte, n)
	if _, err := io.ReadFull(f.r, data); err != nil {
		return event{}, unexpected(err)
	}
	var e v1.FrameEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return event{}, err
	}
	return event{name: e.Event, data: e.Data}, nil
}

// unexpected is the error of a stream that ends within a frame.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
