// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bufio"
	"bytes"
	"io"
)

// maxEventID bounds an id, which goes back in a header.
const maxEventID = 512

// events reads server-sent events and calls take with each one's data and the id by which the
// stream can be asked for again ("" if it has none), until the stream ends, which is nil. An
// event of more than most bytes is errLong.
func events(r io.Reader, most int, take func(id string, data []byte)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var data []byte
	any, id := false, ""
	for {
		// The field's name stands before the data.
		l, err := readLine(in, most+len("data: "))
		if err == io.EOF {
			return nil // what an unfinished event held does not count
		}
		if err != nil {
			return err
		}
		if len(l) == 0 {
			if any {
				take(id, data)
			}
			data, any, id = nil, false, ""
			continue
		}
		if of, ok := bytes.CutPrefix(l, []byte("id:")); ok && len(of) <= maxEventID {
			id = string(bytes.TrimPrefix(of, []byte(" ")))
		}
		rest, ok := bytes.CutPrefix(l, []byte("data:"))
		if !ok {
			continue // a comment, a name, an id that was read
		}
		rest = bytes.TrimPrefix(rest, []byte(" "))
		if len(data)+len(rest) > most {
			return errLong
		}
		if any {
			data = append(data, '\n')
		}
		data, any = append(data, rest...), true
	}
}
