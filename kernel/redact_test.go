// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sandpit.dev/kernel"
	"sandpit.dev/redact"
	"sandpit.dev/redact/redacttest"
)

func redacted(b *box, values ...string) *box {
	var all [][]byte
	for _, v := range values {
		all = append(all, []byte(v))
	}
	b.Redact(all)
	return b
}

func TestValuesAreInNothingThatACellGives(t *testing.T) {
	t.Parallel()
	const token, lines, number = "tok-4f2a9c77", "one \"line\"\nand 'another'", "80417263"
	b := redacted(open(t, kernel.Python), token, lines, number)
	b.run(fmt.Sprintf("import sys, os, json\ntoken = %q; lines = %q; number = %s", token, lines, number))
	stars := func(s string) string { return strings.Repeat("*", len(s)) }

	r := b.run(`print("a", token, "b"); print(lines, file=sys.stderr); os.system("printf %s tok-4f2a; printf %s 9c77"); token + "!"`)
	if r.out != "a "+stars(token)+" b\n"+stars(token) || r.err != stars(lines)+"\n" || r.value() != "'"+stars(token)+"!'" {
		t.Errorf("out %q, err %q, value %q", r.out, r.err, r.value())
	}
	r = b.fail(`raise ValueError("no: " + token)`)
	if r.Error.Value != "no: "+stars(token) || strings.Contains(r.trace(), token) || !strings.Contains(r.trace(), "no: "+stars(token)) {
		t.Errorf("%+v", r.Error)
	}
	r = b.run(`class Rich:
    def _repr_mimebundle_(self, **k): return {"text/plain": token, "text/html": "<b>" + lines + "</b>", "application/json": {token: [lines, number, 1, None, True, {}]}, "text/x-own": lines, "application/x+json": {"a": [[token], {"b": 1.5}]}}
Rich()`)
	res := r.Results[0]
	var got any
	if err := json.Unmarshal(res.JSON, &got); err != nil {
		t.Fatalf("%s: %v", res.JSON, err)
	}
	want := map[string]any{stars(token): []any{stars(lines), stars(number), 1.0, nil, true, map[string]any{}}}
	if fmt.Sprint(got) != fmt.Sprint(want) || res.Text != stars(token) || res.HTML != "<b>"+stars(lines)+"</b>" {
		t.Errorf("%+v: %s", res, res.JSON)
	}
	if more := string(res.More["text/x-own"]) + string(res.More["application/x+json"]); more != `"`+stars(lines)+`"{"a":[["`+stars(token)+`"],{"b":1.5}]}` {
		t.Errorf("%s", more)
	}
}

func TestCodeIsMaskedAsTheTableSays(t *testing.T) {
	b := redacted(open(t, kernel.Python), redacttest.Values(redact.Code)...)
	b.run("import os")
	for how, show := range map[string]func(text string) (string, bool){
		"printed": func(text string) (string, bool) {
			return b.run(fmt.Sprintf("os.write(1, bytes.fromhex('%x')) and None", text)).out, true
		},
		"raised": func(text string) (string, bool) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return "", false
			}
			return b.fail(fmt.Sprintf("raise ValueError(bytes.fromhex('%x').decode())", text)).Error.Value, true
		},
		"returned": func(text string) (string, bool) {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return "", false
			}
			return b.run(fmt.Sprintf("type('V', (), {'__repr__': lambda self: bytes.fromhex('%x').decode()})()", text)).value(), true
		},
	} {
		t.Run(how, func(t *testing.T) {
			redacttest.Run(t, redact.Code, func(t *testing.T, text string) (string, bool) { return show(text) })
		})
	}
}

// Short values stand in any message, marker or image. They must not break what carries them.
func TestValuesThatTheProtocolHasInItHarmNothing(t *testing.T) {
	t.Parallel()
	b := redacted(open(t, kernel.Python), "result", "text/plain", `"id":`, "image/png", "start", "AAAA", "0000", "iVBO", "stat", `{"t"`, ":.00")
	r := b.run(`import base64
png = b"\x89PNG\r\n\x1a\n" + bytes(3000)
class Image:
    def _repr_png_(self): return png
print("the result is 0000")
Image()`)
	if r.out != "the ****** is ****\n" {
		t.Errorf("%q", r.out)
	}
	if len(r.Results) != 1 || !bytes.Equal(r.Results[0].PNG, append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 3000)...)) {
		t.Errorf("%d results, not the image", len(r.Results))
	}
	sh := redacted(open(t, kernel.Bash), "start", "sync", "0024", `"id":`, "end\"", "exit")
	for range 20 {
		if r := sh.run("echo start the sync"); r.out != "***** the ****\n" {
			t.Fatalf("%q", r.out)
		}
	}
	node := redacted(open(t, kernel.JavaScript), "secret-one", "result")
	if r := node.run(`console.log("secret-one"); ({a: "secret-one"})`); r.out != "**********\n" || strings.Contains(r.value(), "secret") {
		t.Errorf("%q %q", r.out, r.value())
	}
}

func TestAProgramThatWaitsIsNotHeldUp(t *testing.T) {
	t.Parallel()
	b := redacted(open(t, kernel.Bash), "password: hunter2")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	seen := make(chan string, 100)
	done := make(chan error, 1)
	go func() {
		_, err := b.Execute(ctx, kernel.Cell{Code: `printf 'password: '; sleep 600`}, kernel.Handler{Stdout: func(p []byte) { seen <- string(p) }})
		done <- err
	}()
	for got := ""; got != "password: "; { // it comes while the cell runs
		select {
		case s := <-seen:
			got += s
		case <-ctx.Done():
			t.Fatalf("only %q came", got)
		}
	}
	if err := b.Interrupt(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	// What only began like a value is there at the cell's end.
	if r := b.run(`printf 'password: hunter'`); r.out != "password: hunter" {
		t.Errorf("%q", r.out)
	}
}

func TestValuesThatWereNamedBeforeStayMasked(t *testing.T) {
	t.Parallel()
	b := redacted(open(t, kernel.Bash), "old-value")
	redacted(b, "new-value")
	redacted(b)
	if r := b.run("echo old-value new-value other-value"); r.out != "********* ********* other-value\n" {
		t.Errorf("%q", r.out)
	}
	if s := b.State(); strings.Contains(fmt.Sprintf("%+v", s), "value") {
		t.Errorf("the state tells them: %+v", s)
	}
}

// A program may say a value before its kernel is ready, and the error quotes its last words.
func TestLastWordsOfAKernelHaveNoValues(t *testing.T) {
	t.Parallel()
	p := launchHere(t, []string{"bash", "-c", "echo the key is tok-4f2a9c77 >&2; exit 1"})
	_, err := kernel.Start(t.Context(), kernel.Python, p, kernel.Options{Redact: [][]byte{[]byte("tok-4f2a9c77")}})
	if err == nil || strings.Contains(err.Error(), "4f2a") || !strings.Contains(err.Error(), "the key is ************") {
		t.Errorf("%v", err)
	}
}
