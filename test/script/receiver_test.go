// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"sandpit.dev/client"
)

// receiverCommand starts a server for the rest of a script, and sets RECEIVER to its URL. It answers with the status
// that the file answer has; with none it waits until whoever asks has gone. For each request it adds a line to the
// file received: the status, the type, the event's id, the delivery's, and whether the signature is that of the
// secret in the file secret.
func receiverCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: receiver")
	}
	out, err := os.OpenFile(ts.MkAbs("received"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	answer, secret := ts.MkAbs("answer"), ts.MkAbs("secret")
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var e struct{ ID, Type string }
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		verdict := "signed"
		key, keyErr := os.ReadFile(secret)
		if err != nil || keyErr != nil || client.VerifyWebhook(r.Header.Get(client.WebhookSignature), body, strings.TrimSpace(string(key)), 5*time.Minute) != nil {
			verdict = "unsigned"
		}
		text, _ := os.ReadFile(answer)
		status, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			status = 0
		}
		mu.Lock()
		_, _ = fmt.Fprintln(out, status, e.Type, e.ID, r.Header.Get("Sandpit-Delivery"), verdict)
		mu.Unlock()
		if status == 0 {
			<-r.Context().Done()
			return
		}
		w.WriteHeader(status)
	}))
	ts.Defer(func() {
		s.CloseClientConnections()
		s.Close()
		_ = out.Close()
	})
	ts.Setenv("RECEIVER", s.URL)
}
