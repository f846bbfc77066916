// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package fakenodes_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/cluster/clustertest"
	"sandpit.dev/internal/leaktest"
	"sandpit.dev/test/servertest"
)

var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "sandpit-fakenodes-")
		if err == nil {
			defer os.RemoveAll(dir)
			program, err = servertest.Build(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return clustertest.Main(m)
	}())
}

// TestManySandboxesOnManyNodes has a server with many sandboxes end and start again: it has them all, by one watch, and asks no pod by itself.
func TestManySandboxesOnManyNodes(t *testing.T) {
	c := clustertest.Get(t)
	many := 40
	if os.Getenv("SANDPIT_SOAK") == "1" {
		many = 1000
	}
	newNodes(t, c, many/podsOfNode+1)
	proxy := clustertest.NewProxy(t, c)
	servertest.Need(t)
	imagetest.Python(t)
	s := servertest.New(t, program, imagetest.Dir(t))
	s.Env = append(s.Env, "SANDPIT_RUNTIMES=kubernetes", "SANDPIT_KUBERNETES_KUBECONFIG="+proxy.Kubeconfig, "SANDPIT_KUBERNETES_NAMESPACE="+clustertest.Space(t, c), "SANDPIT_KUBERNETES_REACH=pod", "SANDPIT_POOL=0")
	s.Start()
	began := time.Now()
	ids := create(t, s, many)
	t.Logf("%d sandboxes after %v; the server has %d MB", many, time.Since(began).Round(time.Millisecond), residentMB(t, s))
	proxy.Asked()
	echo(t, s, ids[0])
	s.Kill()
	began = time.Now()
	s.Start()
	ready := time.Since(began)
	if n := listed(t, s); n != many {
		t.Errorf("%d of %d run after a restart", n, many)
	}
	took := time.Since(began)
	for at := 0; at < many; at += max(1, many/20) {
		echo(t, s, ids[at])
	}
	mb := residentMB(t, s)
	t.Logf("after a restart: ready in %v, all listed after %v; the server has %d MB", ready.Round(time.Millisecond), took.Round(time.Millisecond), mb)
	asked := proxy.Asked()
	count := func(method, kind string) (n int) {
		for _, what := range asked {
			if m, path, _ := strings.Cut(what, " "); m == method && regexp.MustCompile(kind).MatchString(path) {
				n++
			}
		}
		return n
	}
	if n := count("WATCH", "/pods$"); n < 1 || n > 2 { // the sandboxes', and that of the pods which prove policies
		t.Errorf("there are %d watches of pods", n)
	}
	if n := count("PATCH", "/pods/"); n > 0 {
		t.Errorf("it changed pods %d times, none of which needed it", n)
	}
	// Each is looked at once, and the probes' pods are made and deleted.
	if n, most := len(asked), 2*many+40; n > most {
		t.Errorf("it asked %d times, at most %d are expected: %v", n, most, asked[max(0, n-40):])
	}
	deleteAll(t, s, ids)
}

func clientOf(s *servertest.Server) *client.Client {
	return client.New(s.Address, s.Token, client.Options{})
}

// callers is how many calls are made at once.
const callers = 16

// each calls do for each number below n, by several callers.
func each(n int, do func(int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for at := range next {
				do(at)
			}
		})
	}
	for at := range n {
		next <- at
	}
	close(next)
	all.Wait()
}

func create(t *testing.T, s *servertest.Server, n int) []string {
	t.Helper()
	c, ids := clientOf(s), make([]string, n)
	each(n, func(at int) {
		b, _, err := c.Create(t.Context(), v1.CreateSandbox{})
		if err != nil {
			t.Errorf("create: %v", err)
			return
		}
		ids[at] = b.ID
	})
	if t.Failed() {
		t.FailNow()
	}
	return ids
}

func listed(t *testing.T, s *servertest.Server) (running int) {
	t.Helper()
	for b, err := range clientOf(s).List(t.Context(), client.ListQuery{Limit: 200}) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Status == "running" {
			running++
		}
	}
	return running
}

func echo(t *testing.T, s *servertest.Server, id string) {
	t.Helper()
	r, err := clientOf(s).Exec(t.Context(), id, v1.Exec{Argv: []string{"echo", id}})
	if err != nil || strings.TrimSpace(r.Stdout) != id {
		t.Errorf("a command in %s: %+v, %v", id, r, err)
	}
}

func deleteAll(t *testing.T, s *servertest.Server, ids []string) {
	t.Helper()
	c := clientOf(s)
	each(len(ids), func(at int) {
		if err := c.Delete(t.Context(), ids[at]); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
	if n := listed(t, s); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// residentMB returns the memory of the server's process.
func residentMB(t *testing.T, s *servertest.Server) int64 {
	t.Helper()
	n, err := leaktest.RSS(s.PID())
	if err != nil {
		t.Fatal(err)
	}
	return n >> 20
}
