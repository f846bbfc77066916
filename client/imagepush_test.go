// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
)

func TestPushImageFollowsItsStream(t *testing.T) {
	t.Parallel()
	const progress = "event: progress\ndata: {\"sent_bytes\":5,\"total_bytes\":10}\n\n"
	for name, c := range map[string]struct {
		stream, says string
		code         fault.Code
	}{
		"Done":     {progress + "event: unheard of\ndata: {}\n\nevent: pushed\ndata: {\"reference\":\"r.example/x:1\",\"digest\":\"sha256:d\"}\n\n", "", ""},
		"Refused":  {progress + "event: error\ndata: {\"code\":\"denied\",\"detail\":\"the registry refuses\",\"status\":403}\n\n", "refuses", fault.Denied},
		"BrokeOff": {progress, "before the push's end", fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.EscapedPath() != "/v1/images/a%2Fb:1/push" {
					t.Errorf("asked for %s %s", r.Method, r.URL.EscapedPath())
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, c.stream)
			}))
			t.Cleanup(s.Close)
			told := 0
			got, err := client.New(s.URL, "t", client.Options{}).PushImage(t.Context(), "a/b:1", "r.example/x:1", func(p v1.PushStep) {
				if told++; p.SentBytes != 5 || p.TotalBytes != 10 {
					t.Errorf("told %+v", p)
				}
			})
			if fault.Of(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) || told != 1 {
				t.Errorf("%v, told %d times; want %q that says %q", err, told, c.code, c.says)
			}
			if err == nil && got.Digest != "sha256:d" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
