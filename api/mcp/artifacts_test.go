// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/engine/update"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// files lists the resources that are files of sandboxes, in order.
func files(t testing.TB, s *sdk.ClientSession) (out []*sdk.Resource) {
	t.Helper()
	res, err := s.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Resources {
		if strings.HasPrefix(r.URI, "sandbox:") {
			out = append(out, r)
		}
	}
	return out
}

func uris(all []*sdk.Resource) (out []string) {
	for _, r := range all {
		out = append(out, r.URI)
	}
	return out
}

func TestArtifactsOfRunsAreListedAndReadWithoutTheirSandbox(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			h := openRuns(t, nil)
			s := h.session("t-alice", version, nil)
			first := h.ended(h.asked("chat-1", "cd ../artifacts; mkdir 'd d'; echo first > 'd d/é.txt'; echo "+pixel+" | base64 -d > plot.png; head -c 1048577 /dev/zero | tr '\\0' x > big.txt"))
			second := h.ended(h.asked("chat-1", "cd ../artifacts; echo second > 'd d/é.txt'"))
			of := func(run, path string) string {
				return "sandbox://" + first.SandboxID + "/artifacts/" + path + "?run=" + run
			}
			text, plot, big := "d%20d/%C3%A9.txt", "plot.png", "big.txt"

			t.Run("EachFileOnceAsTheLastRunLeftIt", func(t *testing.T) {
				got := files(t, s)
				want := []string{of(second.RunID, big), of(second.RunID, text), of(second.RunID, plot)}
				if !slices.Equal(uris(got), want) {
					t.Fatalf("got %q, want %q", uris(got), want)
				}
				if r := got[2]; r.MIMEType != "image/png" || r.Size != int64(len(pixelBytes(t))) || r.Name != "chat-1: plot.png" || r.Annotations.LastModified != second.EndedAt.Format(time.RFC3339) {
					t.Errorf("got %+v with %+v", r, r.Annotations)
				}
				if r := got[0]; r.Size != 1<<20+1 || r.MIMEType != "text/plain" {
					t.Errorf("got %+v", r)
				}
			})

			t.Run("OneThatChangedSinceAsItIs", func(t *testing.T) {
				ok(t, s, "run_command", arguments{"sandbox": "chat-1", "command": "echo now > plot.png; touch -d 2100-01-01 plot.png; echo new > fresh.txt", "cwd": "/artifacts"})
				got := files(t, s)
				live := "sandbox://" + first.SandboxID + "/artifacts/"
				if got := uris(got); len(got) != 4 || !slices.Contains(got[:2], live+plot) || !slices.Contains(got[:2], live+"fresh.txt") || got[3] != of(second.RunID, text) {
					t.Errorf("got %q", got)
				}
				for _, r := range got {
					if at, err := time.Parse(time.RFC3339, r.Annotations.LastModified); err != nil || at.After(time.Now()) {
						t.Errorf("%s: changed at %s, %v", r.URI, r.Annotations.LastModified, err)
					}
				}
			})

			read := func(t *testing.T) {
				t.Helper()
				for uri, want := range map[string]string{of(first.RunID, text): "first\n", of(second.RunID, text): "second\n", of("latest", text): "second\n"} {
					got, err := resource(t, s, uri)
					if err != nil || got.Text != want || got.MIMEType != "text/plain" || got.URI != strings.Replace(uri, "latest", second.RunID, 1) {
						t.Errorf("%s: got %+v, %v; want %q", uri, got, err, want)
					}
				}
				got, err := resource(t, s, of(second.RunID, plot))
				if err != nil || string(got.Blob) != pixelBytes(t) || got.MIMEType != "image/png" {
					t.Errorf("got %+v, %v", got, err)
				}
				_, err = resource(t, s, of(first.RunID, big))
				link := regexp.MustCompile(`https?://[^ ":]+:[^ ":]+`).FindString(fmt.Sprint(err))
				if err == nil || !strings.Contains(err.Error(), "1048577 bytes") || len(h.body("", link, http.StatusOK)) != 1<<20+1 {
					t.Errorf("the large one: %v", err)
				}
			}
			t.Run("ReadWhileItRuns", read)

			t.Run("ReadWhenItIsStopped", func(t *testing.T) {
				if _, err := h.engine.Stop(t.Context(), callers["t-alice"], "chat-1"); err != nil {
					t.Fatal(err)
				}
				read(t)
				// Also by the address that it had while it ran, and the answer says what it is.
				got, err := resource(t, s, "sandbox://chat-1/artifacts/"+plot)
				if err != nil || string(got.Blob) != pixelBytes(t) || got.URI != of(second.RunID, plot) {
					t.Errorf("got %+v, %v", got, err)
				}
				if _, err := resource(t, s, "sandbox://chat-1/artifacts/fresh.txt"); err == nil || !strings.Contains(err.Error(), "stopped") {
					t.Errorf("one that no run left: %v", err)
				}
				if _, err := resource(t, s, "sandbox://chat-1/workspace/x?run="+first.RunID); err == nil || !strings.Contains(err.Error(), "not an address of the form") {
					t.Errorf("one that is no artifact: %v", err)
				}
				if got := uris(files(t, s)); len(got) != 3 {
					t.Errorf("the list: %q", got)
				}
			})

			t.Run("ReadWhenItsTimeToLiveHasPassed", func(t *testing.T) {
				alice := callers["t-alice"]
				if _, err := h.engine.Update(t.Context(), alice, "chat-1", update.Patch{TTL: new(sandbox.MinClock)}); err != nil {
					t.Fatal(err)
				}
				until(t, "it is deleted", func() bool {
					_, err := h.engine.Get(t.Context(), alice, "chat-1")
					return fault.Is(err, fault.NotFound)
				})
				read(t)
				if got, err := resource(t, s, "sandbox://"+first.SandboxID+"/artifacts/"+plot); err != nil || got.URI != of(second.RunID, plot) {
					t.Errorf("got %+v, %v", got, err)
				}
				if got := uris(files(t, s)); len(got) != 3 {
					t.Errorf("the list: %q", got)
				}
			})

			t.Run("OnlyOnesOwn", func(t *testing.T) {
				stranger := h.session("t-stranger", version, nil)
				if got := uris(files(t, stranger)); len(got) != 0 {
					t.Errorf("a stranger is told of %q", got)
				}
				for _, uri := range []string{of(first.RunID, text), of("latest", text), "sandbox://chat-1/artifacts/" + text} {
					if got, err := resource(t, stranger, uri); err == nil {
						t.Errorf("a stranger read %s: %q", uri, got.Text)
					}
				}
				if _, err := resource(t, h.session("t-reader", version, nil), of(first.RunID, text)); err != nil {
					t.Errorf("a reader: %v", err)
				}
			})

			t.Run("NothingElse", func(t *testing.T) {
				in := "sandbox://" + first.SandboxID + "/artifacts/"
				for _, uri := range []string{
					of(first.RunID, "none"), of(first.RunID, "../../records.db"), of(first.RunID, "..%2f..%2frecords.db"), of(first.RunID, ""), of(first.RunID, "d%20d"),
					of("00000000-0000-4000-8000-000000000000", text), of("..", text), of("", text), of(first.RunID, text) + "&x=1",
					of(first.RunID, text) + "&run=" + second.RunID, in + text + "?", in + text + "?x=" + first.RunID,
					"sandbox://other/artifacts/" + text + "?run=" + first.RunID,
				} {
					if got, err := resource(t, s, uri); err == nil {
						t.Errorf("%s was read: %q", uri, got.Text)
					}
				}
			})
		})
	}
}

func TestTheListOfArtifactsIsBoundedAndShared(t *testing.T) {
	t.Parallel()
	h := openRuns(t, nil)
	quiet := h.ended(h.asked("quiet", "echo x > ../artifacts/x"))
	for i := range 3 {
		h.ended(h.asked(fmt.Sprint("loud-", i), "cd ../artifacts; for i in $(seq 30); do echo x > $i; done"))
	}
	got := files(t, h.alice())
	if len(got) != 50 {
		t.Errorf("%d are listed, want 50", len(got))
	}
	for i := range 3 {
		n := 0
		for _, r := range got {
			if strings.HasPrefix(r.Name, fmt.Sprintf("loud-%d: ", i)) {
				n++
			}
		}
		if n > 20 {
			t.Errorf("%d are of one sandbox, want 20 at most", n)
		}
	}
	// What a caller's delete took with it is not listed.
	for i := range 3 {
		ok(t, h.alice(), "delete_sandbox", arguments{"sandbox": fmt.Sprint("loud-", i)})
	}
	if got := uris(files(t, h.alice())); len(got) != 1 || !strings.HasSuffix(got[0], "/artifacts/x?run="+quiet.RunID) {
		t.Errorf("got %q", got)
	}
}

func pixelBytes(t testing.TB) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// until waits for what comes by itself.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	late := time.After(time.Minute)
	for !so() {
		select {
		case <-look.C:
		case <-late:
			t.Fatal("a minute has passed, and not yet:", what)
		}
	}
}
