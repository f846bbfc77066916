// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/redact"
	"sandpit.dev/redact/redacttest"
	"sandpit.dev/sandbox"
)

// A host sends back values in every spelling, all at once or in pieces, also across the border
// between two reads.
func TestAnswersAreMaskedAsTheTableSays(t *testing.T) {
	type answer struct {
		body string
		step int
	}
	next := make(chan answer, 1)
	var secrets []Bound
	for i, v := range redacttest.Values(redact.Echo) {
		secrets = append(secrets, Bound{sandbox.Secret{Name: fmt.Sprintf("S%d", i), Hosts: []string{"allowed.example"}, Header: fmt.Sprintf("x-s%d", i), Format: "{value}"}, v})
	}
	g := guard(t, restricted("allowed.example"), func(w http.ResponseWriter, r *http.Request) {
		a := <-next
		w.Header().Set("Content-Type", "text/plain")
		for body := a.body; body != ""; {
			n := min(a.step, len(body))
			if _, err := io.WriteString(w, body[:n]); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			body = body[n:]
		}
	}, secrets...)
	g.gate.o.Hold = time.Minute // a byte may take longer than 50 ms on a busy machine
	const block = 4096
	for _, c := range []struct {
		two  bool
		step int
	}{{false, 1 << 20}, {false, 1}, {false, 6}, {false, block}, {true, 1 << 20}, {true, 1}, {true, 6}, {true, block}} {
		t.Run(fmt.Sprintf("http2=%t,step=%d", c.two, c.step), func(t *testing.T) {
			client := g.client(web, c.two)
			redacttest.Run(t, redact.Echo, func(t *testing.T, text string) (string, bool) {
				before := ""
				if c.step == block { // it stands on the border
					before = strings.Repeat(".", block-len(text)/2)
				}
				next <- answer{before + text, c.step}
				status, _, body := g.do(client, "GET", "https://allowed.example/")
				rest, ok := strings.CutPrefix(body, before)
				if status != http.StatusOK || !ok {
					t.Fatalf("%d %.300s", status, body)
				}
				return rest, true
			})
		})
	}
}
