// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package keeper_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server"
	"sandpit.dev/agent/server/fork"
	"sandpit.dev/agent/server/keeper"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, groups server.Groups, shell string) server.Group {
	t.Helper()
	g, err := groups.New("x")
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	dir, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	_, pidfd, err := g.(server.Parent).Start(&fork.Command{
		Program: "/bin/sh", Argv: []string{"sh", "-c", shell}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: int(dir.Fd()), Group: -1,
		Files: [3]int{int(null.Fd()), int(null.Fd()), int(null.Fd())},
	})
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(pidfd)
	return g
}

// A command's end is heard of however fast it came, while what it left behind goes on.
func TestTheEndOfAFastCommandIsHeard(t *testing.T) {
	if !keeper.Works() {
		t.Fatal("there are no keepers here")
	}
	groups := keeper.Groups()
	for range 100 {
		g := start(t, groups, "sleep 1000 & exit 4")
		if status := g.(server.Parent).Status(); status != 4<<8 {
			t.Fatalf("status %#x", status)
		}
		if got := g.(server.Parent).Members(); len(got) != 1 {
			t.Errorf("its members are %v", got)
		}
		if g.Remove() == nil {
			t.Fatal("it is removed with a member")
		}
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := g.Empty(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := g.(server.Parent).Members(); len(got) != 0 {
			t.Errorf("after its end its members are %v", got)
		}
		if err := g.Remove(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAGroupWithoutACommandIsEmpty(t *testing.T) {
	g, err := keeper.Groups().New("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(); err != nil {
		t.Error(err)
	}
	if got := g.(server.Parent).Members(); got != nil {
		t.Errorf("members: %v", got)
	}
	if err := g.Remove(); err != nil {
		t.Error(err)
	}
}
