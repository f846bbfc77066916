// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSaid(t *testing.T) {
	t.Run("TellsTheLastWordsOfAFailure", func(t *testing.T) {
		err := Said(exec.CommandContext(t.Context(), "sh", "-c", "echo so far so good; echo no space left >&2; exit 3"))
		if err == nil || !strings.HasSuffix(err.Error(), "exit status 3: so far so good\nno space left") {
			t.Errorf("got %v", err)
		}
		if err := Said(exec.CommandContext(t.Context(), "sh", "-c", "echo words")); err != nil {
			t.Errorf("of one that worked: %v", err)
		}
	})

	t.Run("EndsWhatACommandStartedWithIt", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := filepath.Join(t.TempDir(), "began")
		result := make(chan error, 1)
		go func() {
			result <- Said(exec.CommandContext(ctx, "sh", "-c", `sleep 1000 & : >"$0"; wait`, began))
		}()
		for {
			if _, err := os.Lstat(began); err == nil {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal("it did not begin")
			}
		}
		cancel()
		select {
		case err := <-result:
			if err == nil {
				t.Error("an interrupted command worked")
			}
		case <-time.After(time.Minute): // what sleeps has our pipe
			t.Fatal("what the command started goes on")
		}
	})
}

func TestSourcesNameWhatTheyOffer(t *testing.T) {
	for from, want := range map[Source]string{
		DebianPackage("crun"):                     "--fetch gets Debian's package crun without installing it",
		DebianSuite{"trixie", "podman runc"}:      "--fetch gets Debian's podman runc of trixie without installing it",
		GoProgram{"example.org/a/tool", "v1.2.3"}: "--fetch builds its version v1.2.3 with Go, which takes minutes",
	} {
		if from.Offer() != want {
			t.Errorf("got %q, want %q", from.Offer(), want)
		}
	}
	// The version is in the name, so that another one is fetched anew.
	if got := (GoProgram{"example.org/a/tool", "v1.2.3"}).Name(); got != "tool@v1.2.3" {
		t.Errorf("is called %q", got)
	}
}
