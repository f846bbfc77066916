// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"sandpit.dev/fault"
)

// maxEvent bounds one event: more than a server sends, and less than hurts.
const maxEvent = 64 << 20

// event is one server-sent event.
type event struct {
	name string
	id   int64  // 0: none, or no number
	mark string // the id as it came
	data []byte
	at   time.Time // of bytes of output, which data are; zero: it is JSON
}

type eventReader struct{ r *bufio.Reader }

func newEventReader(r io.Reader) *eventReader { return &eventReader{bufio.NewReaderSize(r, 64<<10)} }

// each passes the events of a stream on until one is the last. Where it breaks before that, the error says what broke,
// and again what to do.
func (c *Client) each(ctx context.Context, stream io.Reader, what, again string, do func(event) (last bool, err error)) error {
	events := newEventReader(stream)
	for {
		ev, err := events.next()
		switch {
		case err != nil && ctx.Err() != nil:
			return c.unanswered(ctx, err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return fault.New(fault.Unavailable, "the stream broke before the %s's end", what).WithRemedy("%s", again)
		case err != nil:
			return fault.Wrap(fault.Unavailable, err, "the stream of the %s cannot be read", what)
		}
		if last, err := do(ev); last || err != nil {
			return err
		}
	}
}

// next returns the next event; io.EOF at the end of the stream, where an event
// that was begun is dropped, as the standard has it.
func (e *eventReader) next() (event, error) {
	var ev event
	for {
		line, err := e.line()
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if ev.name == "" && ev.data == nil && ev.mark == "" {
				continue
			}
			return ev, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			ev.name = string(value)
		case "id":
			ev.id, _ = strconv.ParseInt(string(value), 10, 64) // else the id is not ours
			ev.mark = string(value)
		case "data":
			if ev.data != nil {
				ev.data = append(ev.data, '\n')
			}
			ev.data = append(ev.data, value...)
			if len(ev.data) > maxEvent {
				return event{}, fmt.Errorf("an event has more than %d bytes", maxEvent)
			}
		}
	}
}

// line returns a line without its end. It holds until the next call.
func (e *eventReader) line() ([]byte, error) {
	var long []byte
	for {
		part, err := e.r.ReadSlice('\n')
		switch {
		case err == nil && long == nil:
			return trimEnd(part), nil
		case err == nil:
			return trimEnd(append(long, part...)), nil
		case err != bufio.ErrBufferFull:
			return nil, err
		case len(long)+len(part) > maxEvent:
			return nil, fmt.Errorf("a line has more than %d bytes", maxEvent)
		}
		long = append(long, part...)
	}
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
