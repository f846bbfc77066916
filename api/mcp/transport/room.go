// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
)

// What a request holds in memory, in bytes, until it is answered.
const (
	// messageCost is one message and its answer. Tools whose answers are larger take more.
	messageCost = 128 << 10
	// bodyCost is what a byte of a body costs: as it came, and as the values in it.
	bodyCost = 4
	// dataCost is what a byte costs that a tool reads whole: in a buffer that grew to hold it,
	// in base64 or as a text, and encoded.
	dataCost = 6
)

// maxBatch is how many messages one body may have.
const maxBatch = 50

type roomKey struct{}

// admit reserves memory for a request and its calls, and refuses a batch that is too long. It
// reports whether the request may continue; else it was answered.
func (h *Handler) admit(w *response, r *http.Request, caller access.Caller) (*http.Request, *budget.Room, bool) {
	messages, err := countMessages(r, h.maxBody)
	if err != nil {
		w.refuse(http.StatusBadRequest, err.Error())
		return r, nil, false
	}
	size := r.ContentLength
	if size < 0 || size > h.maxBody {
		size = h.maxBody
	}
	room := h.memory.Open(caller.Project)
	if _, err := room.Take(r.Context(), int64(messages)*messageCost+bodyCost*size); err != nil {
		e := fault.As(err)
		w.header.Set("Retry-After", "1")
		w.refuse(http.StatusTooManyRequests, e.Message+"; "+e.Remedy)
		return r, nil, false
	}
	return r.WithContext(context.WithValue(r.Context(), roomKey{}, room)), room, true
}

// countMessages returns how many messages a body has, and puts the body back. An invalid body
// counts as one: its errors are reported elsewhere.
func countMessages(r *http.Request, most int64) (int, error) {
	body, under := bufio.NewReaderSize(r.Body, 512), r.Body
	put := func(readers ...io.Reader) {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(readers...), under}
	}
	skipped := int64(0)
	first, err := byte(0), error(nil)
	for first, err = body.ReadByte(); err == nil && skipped <= most && strings.IndexByte(" \t\r\n", first) >= 0; first, err = body.ReadByte() {
		skipped++
	}
	before := io.LimitReader(blanks{}, skipped)
	if err != nil {
		put(before, failed{err})
		return 1, nil
	}
	if first != '[' {
		put(before, strings.NewReader(string([]byte{first})), body)
		return 1, nil
	}
	// What was counted is read again.
	seen := bytes.NewBufferString("[")
	d := json.NewDecoder(io.MultiReader(strings.NewReader("["), io.TeeReader(io.LimitReader(body, most), seen)))
	n := 0
	_, err = d.Token()
	for ; err == nil && d.More(); n++ {
		if n == maxBatch {
			return n, fmt.Errorf("the batch has more than %d messages; send them in several", maxBatch)
		}
		var one json.RawMessage
		err = d.Decode(&one)
	}
	put(before, seen, body)
	return max(n, 1), nil
}

// blanks is white space without an end.
type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
