// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"fmt"
	stdlog "log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestALogIsBegunAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	if err := os.WriteFile(path, []byte("of an earlier server\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := openLogFile(path, 4096)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const writers, lines = 4, 400
	for w := range writers {
		wg.Go(func() {
			for n := range lines {
				if _, err := fmt.Fprintf(l, "line %d of %d\n", n, w); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := l.Write([]byte("the last\n")); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("there are %v, %v", files, err)
	}
	for _, name := range []string{path, path + ".1"} {
		b, err := os.ReadFile(name)
		if err != nil || len(b) > 4096 || len(b) == 0 {
			t.Errorf("%s has %d bytes, %v", name, len(b), err)
		}
		for line := range strings.Lines(string(b)) {
			if !strings.HasPrefix(line, "line ") && line != "the last\n" || !strings.HasSuffix(line, "\n") {
				t.Errorf("%s has half a line: %q", name, line)
			}
		}
	}
	if b, _ := os.ReadFile(path); !bytes.HasSuffix(b, []byte("the last\n")) {
		t.Errorf("the newest line is not in the newest file: %q", b)
	}
}

func TestALogThatIsALinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "server.log")); err != nil {
		t.Fatal(err)
	}
	if l, err := openLogFile(filepath.Join(dir, "server.log"), 4096); err == nil {
		_ = l.Close()
		t.Error("it was opened")
	}
}

func TestTheStandardLogIsCaptured(t *testing.T) {
	var before, got bytes.Buffer
	stdlog.SetOutput(&before)
	defer stdlog.SetOutput(os.Stderr)
	restore := captureStandardLog(slog.New(slog.NewTextHandler(&got, &slog.HandlerOptions{Level: slog.LevelDebug})))
	stdlog.Printf("Unsolicited response %q", "from inside")
	restore()
	stdlog.Print("afterwards")
	if !strings.Contains(got.String(), "level=DEBUG") || !strings.Contains(got.String(), "from inside") || strings.Contains(got.String(), "afterwards") {
		t.Errorf("got %q", got.String())
	}
	if strings.Contains(before.String(), "from inside") || !strings.Contains(before.String(), "afterwards") {
		t.Errorf("past it went %q", before.String())
	}
}
