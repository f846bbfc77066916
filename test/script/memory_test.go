// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
)

// serverMemory is what the server of TestAServerOutlivesLargeAnswers may use: an answer of 16
// MiB of control characters on both streams is more.
const serverMemory = 160 << 20

// memoryGroup makes a control group with a limit below the test's own, in which fn runs with
// all that it starts. It gives what the kernel killed in it.
func memoryGroup(t *testing.T, limit int64, fn func()) (killed func() int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	own, file, events := "", "memory.max", "memory.events"
	for line := range strings.Lines(string(text)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(part) == 3 && part[1] == "memory":
			own, file, events = "/sys/fs/cgroup/memory"+part[2], "memory.limit_in_bytes", "memory.oom_control"
		case own == "" && len(part) == 3 && part[0] == "0":
			own = "/sys/fs/cgroup" + part[2]
		}
	}
	dir := filepath.Join(own, "sandpit-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no control group can be made: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Errorf("the control group stays: %v", err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, limit), 0); err != nil {
		t.Skipf("the control group has no memory limit: %v", err)
	}
	move := func(to string) {
		if err := os.WriteFile(filepath.Join(to, "cgroup.procs"), fmt.Append(nil, os.Getpid()), 0); err != nil {
			t.Fatal(err)
		}
	}
	move(dir)
	defer move(own)
	fn()
	return func() int {
		text, err := os.ReadFile(filepath.Join(dir, events))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
				kills, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				return kills
			}
		}
		return 0
	}
}

func TestAServerOutlivesLargeAnswers(t *testing.T) {
	images := needRoot(t)
	dir := t.TempDir()
	s := &server{dir: dir, env: append(environment(dir, images), "SANDPIT_POOL=0")}
	killed := memoryGroup(t, serverMemory, func() {
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
	})
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	var at struct {
		URL string `json:"url"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "run", "server.json"))
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil {
		t.Fatal(err)
	}
	admin, err := os.ReadFile(filepath.Join(dir, "data", "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	root := client.New(at.URL, strings.TrimSpace(string(admin)), client.Options{})
	enter := func(project string) (c *client.Client, box, token string) {
		t.Helper()
		made, err := root.CreateToken(t.Context(), v1.CreateToken{Name: project, Project: &project})
		if err != nil {
			t.Fatal(err)
		}
		c = client.New(at.URL, made.Secret, client.Options{})
		one, _, err := c.Create(t.Context(), v1.CreateSandbox{DiskMB: new(1024)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // cleanUp knows the default project alone
			if err := c.Delete(context.Background(), one.ID); err != nil {
				t.Error(err)
			}
		})
		return c, one.ID, made.Secret
	}
	attacker, box, token := enter("attacker")
	victim, other, _ := enter("victim")
	if _, err := attacker.Exec(t.Context(), box, v1.Exec{Command: new(
		`mkdir d && cd d && python3 -c "import os;[os.symlink(b'\xff'*3800, str(n)) for n in range(20000)]"`)}); err != nil {
		t.Fatal(err)
	}
	raw := func(method, path, body string) {
		req, err := http.NewRequestWithContext(t.Context(), method, at.URL+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s %s: %s, %v", method, path, resp.Status, err)
		}
	}
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			raw("POST", "/v1/sandboxes/"+box+"/exec", `{"command":"head -c 16777216 /dev/zero; head -c 16777216 /dev/zero >&2","max_output_bytes":16777216}`)
		})
		wg.Go(func() { raw("GET", "/v1/sandboxes/"+box+"/files?path=d&limit=100000&detail=true", "") })
	}
	for range 20 {
		res, err := victim.Exec(t.Context(), other, v1.Exec{Command: new("head -c 100000 /dev/zero | tr '\\0' x"), MaxOutputBytes: new(int64(200_000))})
		if err != nil || len(res.Stdout) != 100_000 || res.StdoutTruncated {
			t.Fatalf("the victim's command: %+v, %v", res, err)
		}
	}
	wg.Wait()
	if n := killed(); n != 0 {
		t.Errorf("the kernel killed %d processes", n)
	}
	if _, err := victim.Exec(t.Context(), other, v1.Exec{Command: new("true")}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
