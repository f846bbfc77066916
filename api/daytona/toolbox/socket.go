// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"sandpit.dev/fault"
)

const (
	maxMessage = 1 << 20 // bytes of a message from a client
	goodbye    = 15 * time.Second
)

// asksForSocket reports whether a request is an upgrade to a WebSocket.
func asksForSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// offered returns the subprotocols that a client offers, one of which has to be accepted: browsers cannot set headers, and use
// subprotocols instead.
func offered(r *http.Request) (all []string) {
	for _, line := range r.Header.Values("Sec-WebSocket-Protocol") {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one != "" {
				all = append(all, one)
			}
		}
	}
	return all
}

// offer returns what follows a prefix in one of the subprotocols that a client offers.
func offer(r *http.Request, prefix string) (string, bool) {
	for _, one := range offered(r) {
		if value, ok := strings.CutPrefix(one, prefix); ok {
			return value, true
		}
	}
	return "", false
}

// write sends a message, and fails if the client does not read it within stall.
func write(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, data []byte, stall time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, stall)
	defer cancel()
	if err := conn.Write(ctx, kind, data); err != nil {
		return fault.Wrap(fault.Canceled, err, "the client has gone")
	}
	return nil
}
