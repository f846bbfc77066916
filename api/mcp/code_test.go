// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/sandbox"
)

func TestRunCode(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this host has no python3, which the memory runtime would run")
	}
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	run := func(t *testing.T, args arguments) string {
		t.Helper()
		args["sandbox"] = "box"
		return ok(t, s, "run_code", args)
	}
	t.Run("BeginsWithTheVerdictThenTheValue", func(t *testing.T) {
		run(t, arguments{"code": "x = 6"})
		got := run(t, arguments{"code": "print('printed')\nx * 7"})
		if !strings.HasPrefix(got, "ok after ") || !strings.Contains(verdict(got), "· sandbox box · context ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "--- value ---\n42\n--- stdout ---\nprinted")
	})
	t.Run("TakesWhatModelsWriteInstead", func(t *testing.T) {
		wantParts(t, run(t, arguments{"source": "echo $((x+1))", "lang": "bash", "timeout": "20"}), "--- stdout ---\n1")
	})
	t.Run("AnErrorIsNoErrorOfTheTool", func(t *testing.T) {
		got := run(t, arguments{"code": "def f():\n    return 1 / 0\nf()"})
		if !strings.HasPrefix(got, "error ZeroDivisionError after ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "--- error ---\n", "return 1 / 0", "division by zero")
	})
	t.Run("NothingIsSaid", func(t *testing.T) {
		wantParts(t, run(t, arguments{"code": "x = 7"}), "no value and no output")
	})
	t.Run("ImagesAreImages", func(t *testing.T) {
		res := call(t, s, "run_code", arguments{"sandbox": "box", "code": `
class Shown:
    def __repr__(self): return "plain"
    def _repr_png_(self): return b"\x89PNG\r\n\x1a\nimage"
for _ in range(10): display(Shown())`})
		images := 0
		for _, c := range res.Content[1:] {
			if img, is := c.(*sdk.ImageContent); is && img.MIMEType == "image/png" && string(img.Data) == "\x89PNG\r\n\x1a\nimage" {
				images++
			}
		}
		if images != 8 || len(res.Content) != 9 {
			t.Errorf("got %d images in %d parts", images, len(res.Content))
		}
		wantParts(t, text(t, &sdk.CallToolResult{Content: res.Content[:1]}), "plain", "2 images are left out")
	})
	t.Run("LongOutputIsCutAndTheValueStays", func(t *testing.T) {
		got := run(t, arguments{"code": "print('x' * 100_000)\n'the value'", "max_output_chars": 1000})
		if len(got) > 3000 {
			t.Errorf("got %d bytes", len(got))
		}
		wantParts(t, got, "the value", "shortened")
	})
	t.Run("AKernelThatEndsIsTold", func(t *testing.T) {
		got := run(t, arguments{"code": "import os; os._exit(3)"})
		if !strings.HasPrefix(got, "the kernel ended after ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "exit code 3", "the next call starts anew")
		wantParts(t, run(t, arguments{"code": "1"}), "started anew", "exit code 3")
	})
	t.Run("ATimeoutInterrupts", func(t *testing.T) {
		got := run(t, arguments{"code": "import time; time.sleep(600)", "timeout_seconds": 0.2})
		if !strings.HasPrefix(got, "interrupted: its timeout passed after ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
	})
}

func TestCodeThatTakesLongGoesOn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this host has no python3, which the memory runtime would run")
	}
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	begin := func(code string) (string, arguments) {
		t.Helper()
		got := ok(t, s, "run_code", arguments{"sandbox": "box", "wait_seconds": 0.5, "code": code})
		if !strings.HasPrefix(got, "still running after ") || !strings.Contains(verdict(got), " · context ") {
			t.Fatalf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "one", "stop_process")
		tool, args := nextCall(t, got)
		if tool != "read_process" {
			t.Errorf("the next call is %s", tool)
		}
		return args["process"].(string), args
	}
	const wait = "import os, time\nprint('one', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\n"

	t.Run("AndIsRead", func(t *testing.T) {
		_, next := begin(wait + "print('two')\n6 * 7")
		wantParts(t, ok(t, s, "read_process", arguments{"sandbox": "box", "process": next["process"]}), "still running after ", "one")
		res := call(t, h.session("t-bob", handshake, nil), "read_process", arguments{"sandbox": "box", "process": next["process"]})
		if !res.IsError {
			t.Errorf("another caller reads it: %s", text(t, res))
		}
		ok(t, s, "write_file", arguments{"sandbox": "box", "path": "go", "content": ""})
		got := ok(t, s, "read_process", next)
		if !strings.HasPrefix(got, "ok after ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "--- value ---\n42", "one\ntwo")
	})

	t.Run("AndIsInterrupted", func(t *testing.T) {
		ok(t, s, "run_command", arguments{"sandbox": "box", "command": "rm go"})
		p, _ := begin("kept = 5\n" + wait)
		got := ok(t, s, "stop_process", arguments{"sandbox": "box", "process": p})
		if !strings.HasPrefix(got, "interrupted after ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "one")
		wantParts(t, ok(t, s, "run_code", arguments{"sandbox": "box", "code": "kept"}), "--- value ---\n5")
	})

	t.Run("AndOutlivesTheHandler", func(t *testing.T) {
		begin(wait + "open('mark', 'w').close()")
		h.handler.Close()
		if _, _, err := h.inside.WriteFile(t.Context(), callers["t-alice"], "box", "go", strings.NewReader(""), sandbox.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := h.inside.StatFile(t.Context(), callers["t-alice"], "box", "mark", ""); err == nil {
				break
			}
			if t.Context().Err() != nil {
				t.Fatal("the code did not go on")
			}
		}
	})
}
