// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// line is one line of stdin, or why it is invalid.
type line struct {
	data  []byte
	err   error
	fatal bool // nothing comes after it
}

// readLines sends what it reads until stdin ends or ctx is done, and closes lines.
func readLines(ctx context.Context, stdin io.Reader, most int, lines chan<- line) {
	defer close(lines)
	in := bufio.NewReaderSize(stdin, 64<<10)
	for {
		data, err := readLine(in, most)
		l := line{data: data, err: err}
		if err != nil && !errors.Is(err, errLong) {
			l.fatal = true
		}
		if err == nil && len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		select {
		case lines <- l:
		case <-ctx.Done():
			return
		}
		if l.fatal {
			return
		}
	}
}

var errLong = errors.New("the message is too long")

// readLine reads a line without its end. One of more than most bytes is passed
// over to its end and is errLong. A last line without an end counts.
func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var kept []byte
	n := 0
	for {
		part, err := in.ReadSlice('\n')
		n += len(part)
		if len(kept)+len(part) <= most+2 {
			kept = append(kept, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && n > 0:
		case err != nil:
			return nil, err
		}
		kept = bytes.TrimRight(kept, "\r\n")
		if n > most+2 || len(kept) > most {
			return nil, fmt.Errorf("%w: it has %d bytes, at most %d are taken", errLong, n, most)
		}
		return kept, nil
	}
}

// writer writes messages to stdout, one line each. It is safe for concurrent use.
type writer struct {
	broken func(error) // called with the first failure

	mu sync.Mutex
	w  io.Writer
}

// write writes one message, which may span lines.
func (w *writer) write(message []byte) {
	var b bytes.Buffer
	b.Grow(len(message) + 1)
	if bytes.IndexByte(message, '\n') < 0 && bytes.IndexByte(message, '\r') < 0 {
		b.Write(message)
	} else if compact(&b, message) != nil {
		return // not JSON: nothing but messages goes to stdout
	}
	b.WriteByte('\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := w.w.Write(b.Bytes()); err != nil {
		w.broken(fmt.Errorf("write to stdout: %w", err))
	}
}
