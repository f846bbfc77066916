// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// block is a block of code of a page. What is said of it for this test stands before it, where readers
// do not see it:
//
//	<!-- not run: WHY -->          nothing of it is run
//	<!-- not run, line N: WHY -->  its Nth command is not
//	<!-- first: COMMAND -->        is run before it
//	<!-- status: N N ... -->       of its commands; those that are left out end with 0
//	<!-- output -->                JSON that is part of the last output
type block struct {
	line     int
	language string
	text     []string
	skip     string
	skips    map[int]bool
	first    []string
	statuses []int
	output   bool
}

var (
	fence    = regexp.MustCompile("^ *```([a-z]*)$")
	mark     = regexp.MustCompile(`^ *<!-- (not run|first|status|output)(?:, line (\d+))?(?:: (.*))? -->$`)
	whatEver = []string{"duration_ms"} // of JSON: each time another
)

// blocks returns a page's blocks of code.
func blocks(page string) (all []*block, err error) {
	next, open := &block{}, false
	n := 0
	for line := range strings.Lines(page) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if f := fence.FindStringSubmatch(line); f != nil {
			if open = !open; open {
				next.line, next.language = n, f[1]
				continue
			}
			all = append(all, next)
			next = &block{}
			continue
		}
		if open {
			next.text = append(next.text, line)
			continue
		}
		m := mark.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		switch m[1] {
		case "not run":
			at, _ := strconv.Atoi(m[2])
			switch {
			case m[3] == "":
				return nil, fmt.Errorf("line %d does not say why", n)
			case m[2] == "":
				next.skip = m[3]
			default:
				if next.skips == nil {
					next.skips = make(map[int]bool)
				}
				next.skips[at] = true
			}
		case "first":
			next.first = append(next.first, m[3])
		case "status":
			for _, word := range strings.Fields(m[3]) {
				status, err := strconv.Atoi(word)
				if err != nil {
					return nil, fmt.Errorf("line %d: %w", n, err)
				}
				next.statuses = append(next.statuses, status)
			}
		case "output":
			next.output = true
		}
	}
	if open {
		return nil, fmt.Errorf("the block of line %d has no end", next.line)
	}
	return all, nil
}

// step is a command of a page, and what it has to do.
type step struct {
	line   int
	typed  string
	status int
	output *string // nil: whatever it likes
	part   map[string]json.RawMessage
	setup  bool
}

// steps returns what is to be run of a page.
func steps(all []*block) (out []*step, err error) {
	for _, b := range all {
		switch b.language {
		case "sh", "console":
		case "json":
			if b.output {
				if len(out) == 0 {
					return nil, fmt.Errorf("line %d: nothing was run before it", b.line)
				}
				if err := json.Unmarshal([]byte(strings.Join(b.text, "\n")), &out[len(out)-1].part); err != nil {
					return nil, fmt.Errorf("line %d: %w", b.line, err)
				}
			}
			continue
		case "text", "yaml":
			continue
		default:
			return nil, fmt.Errorf("the block of line %d is %q; say sh if it is to be run, console if it shows answers as well, else text, yaml or json", b.line, b.language)
		}
		if b.skip != "" {
			continue
		}
		for _, typed := range b.first {
			out = append(out, &step{line: b.line, typed: typed, setup: true})
		}
		n, begun := 0, (*step)(nil)
		for i, line := range b.text {
			if b.language == "console" {
				typed, ok := strings.CutPrefix(line, "$ ")
				if !ok {
					if begun != nil {
						*begun.output += line + "\n"
					}
					continue
				}
				line = typed
			}
			if begun != nil && strings.HasSuffix(begun.typed, "\\") && b.language == "sh" {
				begun.typed += "\n" + line
				continue
			}
			n++
			s := &step{line: b.line + 1 + i, typed: line}
			begun = s
			if len(b.statuses) >= n {
				s.status = b.statuses[n-1]
			}
			if b.language == "console" {
				s.output = new(string)
			}
			if b.skips[n] {
				begun = nil
				continue
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// pages are what the project has to read.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	if len(all) < 15 {
		t.Fatalf("there are only the pages %v", all)
	}
	return all
}

// testPages runs the commands of each page in order, as its reader does who types them all.
func testPages(t *testing.T, images string) {
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages(t) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		found, err := blocks(string(b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all, err := steps(found)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(all) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newTypist(t, images)
			m.env = append(m.env, "SOURCE="+source)
			var typed []string
			n := 0
			for _, s := range all {
				typed = append(typed, strings.ReplaceAll(s.typed, "127.0.0.1:8080", m.at))
				if !s.setup {
					n++
				}
			}
			done, err := m.run(t.Context(), typed)
			if err != nil {
				t.Error(err)
			}
			t.Attr("typed/"+name, strconv.Itoa(n))
			for i, c := range done {
				if err := all[i].compare(c, m.normal); err != nil {
					t.Errorf("line %d: %v\n$ %s\n%s[%d]", all[i].line, err, c.typed, c.output, c.status)
				}
			}
		})
	}
}

// compare says what is wrong with what a command of a page did.
func (s *step) compare(c told, normal func(string) string) error {
	if c.status != s.status {
		return fmt.Errorf("it ended with %d, want %d", c.status, s.status)
	}
	if s.output != nil && normal(c.output) != normal(*s.output) {
		return fmt.Errorf("the page shows %q", *s.output)
	}
	if s.part == nil {
		return nil
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.output), &got); err != nil {
		return err
	}
	for name, want := range s.part {
		if !slices.Contains(whatEver, name) && !bytes.Equal(got[name], want) || got[name] == nil {
			return fmt.Errorf("%s is %s; the page shows %s", name, got[name], want)
		}
	}
	return nil
}

// spans matches a command within a text.
var spans = regexp.MustCompile("`(sandpit(?: [^`]*)?)`")

// A command that is named within a text is one, and so are its flags.
func TestCommandsWithinTextsAre(t *testing.T) {
	help, err := os.ReadFile("../../cmd/sandpit/testdata/help.golden")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]string)
	for _, section := range strings.Split(string(help), "===== ")[1:] {
		command, text, _ := strings.Cut(section, "\n")
		known[command] = text
	}
	n := 0
	for _, path := range pages(t) {
		if filepath.Base(path) == "CHANGELOG.md" { // which speaks of what was
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range spans.FindAllStringSubmatch(string(b), -1) {
			n++
			if err := isCommand(known, span[1]); err != nil {
				t.Errorf("%s: `%s`: %v", filepath.Base(path), span[1], err)
			}
		}
	}
	if n < 80 {
		t.Errorf("%d commands were found in all pages", n)
	}
}

var (
	verb     = regexp.MustCompile(`^[a-z][a-z-]*$`)
	longFlag = regexp.MustCompile(`^\[?(--[a-z][a-z-]+)`)
)

// isCommand checks a command as it is written in texts.
func isCommand(known map[string]string, text string) error {
	words := strings.Fields(text)
	command := words[0]
	rest := words[1:]
	for len(rest) > 0 && known[command+" "+rest[0]] != "" {
		command, rest = command+" "+rest[0], rest[1:]
	}
	if len(rest) > 0 && verb.MatchString(rest[0]) && (command == "sandpit" || strings.Contains(known[command], "Available Commands:")) {
		return fmt.Errorf("%s has no command %s", command, rest[0])
	}
	for _, word := range rest {
		if word == "--" || command == "sandpit bench" { // whose flags are those of sandpit-bench
			break
		}
		if flag := longFlag.FindStringSubmatch(word); flag != nil && !strings.Contains(known[command], flag[1]) {
			return errors.New("there is no flag " + flag[1])
		}
	}
	return nil
}
