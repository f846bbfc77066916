// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/internal/checktest"
)

// through sends requests after change has seen them, and answers before it has.
type through struct {
	request func(*http.Request)
	answer  func(*http.Response)
}

func (th through) RoundTrip(r *http.Request) (*http.Response, error) {
	if th.request != nil {
		r = r.Clone(r.Context())
		th.request(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && th.answer != nil {
		th.answer(resp)
	}
	return resp, err
}

func (h *house) via(th through, o client.Options) *client.Client {
	o.HTTP = &http.Client{Transport: th}
	return client.New(h.url, adminToken, o)
}

// breaking is a body that ends in the middle of what it has.
type breaking struct {
	io.ReadCloser
	left int
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func TestAStreamGetsAllOfACommandsOutput(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.box()
	const much = 100 << 20
	exec := v1.Exec{Command: new(fmt.Sprintf("head -c %d /dev/zero; echo e >&2", much)), MaxOutputBytes: new(int64(1 << 20))}
	check := func(t *testing.T, c *client.Client, truncated bool) {
		t.Helper()
		var n int64
		var stderr string
		out, err := c.ExecStream(t.Context(), id, exec, func(f client.Frame) error {
			if f.Stderr {
				stderr += string(f.Data)
				return nil
			}
			n += int64(len(f.Data))
			return nil
		})
		must(t, err)
		if out.StdoutBytes != much || out.StdoutTruncated != truncated || truncated == (n == much) || stderr != "e\n" {
			t.Errorf("%d bytes came, stderr %q: %+v", n, stderr, out)
		}
	}
	t.Run("BeyondWhatIsKept", func(t *testing.T) { check(t, h.via(through{}, client.Options{ReuseFrames: true}), false) })
	t.Run("OverConnectionsThatBreak", func(t *testing.T) {
		var resumed, asked atomic.Int32
		c := h.via(through{
			request: func(r *http.Request) {
				asked.Add(1)
				if r.Header.Get("Last-Event-ID") != "" {
					resumed.Add(1)
				}
			},
			answer: func(resp *http.Response) {
				if asked.Load() < 4 {
					resp.Body = &breaking{resp.Body, 25_000_000}
				}
			},
		}, client.Options{})
		check(t, c, false)
		if resumed.Load() != 3 {
			t.Errorf("it was resumed %d times, of %d requests", resumed.Load(), asked.Load())
		}
	})
	t.Run("NotOfAServerWithoutFrames", func(t *testing.T) {
		check(t, h.via(through{request: func(r *http.Request) { r.Header.Set("Accept", "text/event-stream;data=exact") }}, client.Options{}), true)
	})
	t.Run("ToTheByte", func(t *testing.T) {
		sum := sha256.New()
		_, err := h.ExecStream(t.Context(), id, v1.Exec{Command: new("seq 1 3000000")}, func(f client.Frame) error {
			_, err := sum.Write(f.Data)
			return err
		})
		must(t, err)
		want := sha256.New()
		for i := range 3_000_000 {
			_, _ = fmt.Fprintln(want, i+1)
		}
		checktest.Equal(t, "sum", hex.EncodeToString(sum.Sum(nil)), hex.EncodeToString(want.Sum(nil)))
	})
}

func TestFramesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, body := range map[string]string{
		"TooLong":      "\xff\xff\xff\xff",
		"TooShort":     "\x00\x00\x00\x05\x01abcd",
		"NoJSON":       "\x00\x00\x00\x05\x00abcd",
		"NoStart":      "\x00\x00\x00\x1c\x00" + `{"event":"start","data":[]}`,
		"BrokenOff":    "\x00\x00\x00\x40\x01abcd",
		"NothingAtAll": "",
	} {
		t.Run(name, func(t *testing.T) {
			c := h.via(through{answer: func(resp *http.Response) {
				if resp.StatusCode != http.StatusOK { // the server is still at work on the request before
					return
				}
				_ = resp.Body.Close()
				resp.Header.Set("Content-Type", v1.FramesType)
				resp.Body = io.NopCloser(bytes.NewReader([]byte(body)))
			}}, client.Options{})
			_, err := c.ExecStream(t.Context(), h.box(), v1.Exec{Command: new("true")}, func(client.Frame) error { return nil })
			if err == nil || !strings.Contains(err.Error(), "stream") && !strings.Contains(err.Error(), "event") {
				t.Errorf("%v", err)
			}
		})
	}
}
