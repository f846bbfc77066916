// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/budget"
)

// withMemory has the coat count in a budget of the test's.
func withMemory(b *budget.Budget) func(*rest.Options) {
	return func(o *rest.Options) { o.Memory = b }
}

func TestLargeOutputIsAnsweredExactlyAndCounted(t *testing.T) {
	t.Parallel()
	b := budget.New(budget.Options{Total: 1 << 30})
	h := open(t, withMemory(b))
	path := "/v1/sandboxes/" + h.create().ID
	random := make([]byte, 300_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	all := strings.Repeat("\x00\x01\b\f\n\r\t\"\\/<>&\x7fé€\U0001F600\u2028\u2029 end", 3000)
	for name, data := range map[string][]byte{
		"NUL": make([]byte, 200_000), "Bytes": bytes.Repeat([]byte{0xff}, 200_000), "Random": random, "Text": []byte(all),
		"ACharacterThatIsCutOff": append(bytes.Repeat([]byte("x"), 99_999), "é and more"...),
	} {
		t.Run(name, func(t *testing.T) {
			if a := h.do("PUT", path+"/files/data", data); a.StatusCode != 204 {
				t.Fatalf("upload: %d %s", a.StatusCode, a.body)
			}
			most, want := 1<<20, data
			if name == "ACharacterThatIsCutOff" {
				most, want = 100_000, data[:99_999]
			}
			for _, shell := range []string{"/exec", "/shells/main/exec"} {
				got := execs(h, path+shell, object{"command": "cat data; head -c 10 data >&2", "max_output_bytes": most})
				if got.Stdout != strings.ToValidUTF8(string(want), "\uFFFD") || got.StdoutBytes != int64(len(data)) || got.StdoutTruncated != (len(want) < len(data)) {
					t.Errorf("%s: %d characters of %d bytes, truncated %v", shell, len(got.Stdout), got.StdoutBytes, got.StdoutTruncated)
				}
				exact, err := base64.StdEncoding.DecodeString(got.StdoutBase64)
				if valid := strings.ToValidUTF8(string(want), "") == string(want); err != nil || valid != (got.StdoutBase64 == "") || !valid && !bytes.Equal(exact, want) {
					t.Errorf("%s: base64 of %d bytes, %v", shell, len(exact), err)
				}
				if *got.ExitCode != 0 || got.ProcessID == "" || got.Stderr != strings.ToValidUTF8(string(data[:10]), "\uFFFD") {
					t.Errorf("%s: got %+v", shell, got.ExecOutcome)
				}
			}
		})
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are counted when all is answered", b.Used())
	}
}

func execs(h *house, path string, body object) v1.ExecResult {
	return want[v1.ExecResult](h, 200, "POST", path, body)
}

func TestAProjectThatHoldsItsShareIsRefusedAndAnotherIsNot(t *testing.T) {
	t.Parallel()
	b := budget.New(budget.Options{Total: 8 << 20, Wait: time.Millisecond})
	h := open(t, withMemory(b))
	alice, bob := h.as("alice", access.SandboxesRead, access.SandboxesWrite), h.as("bob", access.SandboxesRead, access.SandboxesWrite)
	of := map[*house]string{alice: "/v1/sandboxes/" + alice.create().ID, bob: "/v1/sandboxes/" + bob.create().ID}
	var rooms []*budget.Room
	for range 4 {
		r := b.Open("alice")
		if _, err := r.Take(t.Context(), 1<<20); err != nil {
			t.Fatal(err)
		}
		rooms = append(rooms, r)
	}
	body := object{"path": "big", "content": strings.Repeat("x", 500_000)}
	a := alice.do("POST", of[alice]+"/files", body)
	if a.StatusCode != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("a large body: got %d %s", a.StatusCode, a.body)
	}
	if r := execs(alice, of[alice]+"/exec", object{"command": "head -c 500000 /dev/zero"}); !r.StdoutTruncated || r.StdoutBytes != 500_000 || len(r.Stdout) < 32<<10 {
		t.Errorf("a large output: got %d characters, %+v", len(r.Stdout), r.ExecOutcome)
	}
	if r := execs(bob, of[bob]+"/exec", object{"command": "head -c 100000 /dev/zero", "max_output_bytes": 200_000}); r.StdoutTruncated || len(r.Stdout) != 100_000 {
		t.Errorf("another project: got %d characters, %+v", len(r.Stdout), r.ExecOutcome)
	}
	if r := execs(alice, of[alice]+"/exec", object{"command": "echo small"}); r.Stdout != "small\n" {
		t.Errorf("what is small: got %+v", r)
	}
	for _, r := range rooms {
		r.Close()
	}
	if a := alice.do("POST", of[alice]+"/files", body); a.StatusCode >= 300 {
		t.Errorf("when there is room again: got %d %s", a.StatusCode, a.body)
	}
}

func TestAListingIsBoundedInBytesAndGoesOn(t *testing.T) {
	t.Parallel()
	b := budget.New(budget.Options{Total: 16 << 20}) // an answer has 2 MiB of it
	h := open(t, withMemory(b))
	path := "/v1/sandboxes/" + h.create().ID
	const links = 300
	execs(h, path+"/exec", object{"command": fmt.Sprintf(`mkdir d && cd d && to=$(printf '\377%%.0s' $(seq 3800)) && for i in $(seq %d); do ln -s "$to" "$i"; done`, links)})
	seen, cut := 0, 0
	for after := ""; ; {
		a := h.do("GET", path+"/files?path=d&limit=100000&detail=true&after="+after, nil)
		var page []v1.FileInfo
		if err := json.Unmarshal(a.body, &page); err != nil || a.StatusCode != 200 || len(page) == 0 {
			t.Fatalf("got %d, %d entries, %v", a.StatusCode, len(page), err)
		}
		if len(a.body) > 2<<20 || int64(len(a.body)) != a.ContentLength {
			t.Errorf("a page has %d bytes, and says %d", len(a.body), a.ContentLength)
		}
		if seen += len(page); a.Header.Get("Sandpit-Truncated") != "true" {
			break
		}
		if page[len(page)-1].Name <= after {
			t.Fatalf("after %q comes %q", after, page[len(page)-1].Name)
		}
		after = page[len(page)-1].Name
		cut++
	}
	if seen != links || cut < 1 {
		t.Errorf("%d entries, and %d pages before the last", seen, cut)
	}
	short := h.do("GET", path+"/files?path=d&limit=100000", nil)
	var names []v1.FileEntry
	if err := json.Unmarshal(short.body, &names); err != nil || len(names) != links || short.Header.Get("Sandpit-Truncated") != "" {
		t.Errorf("without detail: %d entries, %v", len(names), err)
	}
	if a := h.do("GET", path+"/files?path=/var/empty/none", nil); a.StatusCode != 404 {
		t.Errorf("no directory: %d", a.StatusCode)
	}
	if b.Used() != 0 {
		t.Errorf("%d bytes are counted when all is answered", b.Used())
	}
}
