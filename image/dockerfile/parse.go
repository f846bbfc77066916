// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"sandpit.dev/fault"
)

// Bounds of a Dockerfile.
const (
	MaxBytes = 1 << 20
	maxSteps = 1000 // instructions
	maxArgs  = 200  // given by the caller
)

// Options are what a build says besides the text.
type Options struct {
	Args   map[string]string // values of ARG
	Target string            // name or number of a stage; "": the last
	Arch   string            // of the machine, as images write it: amd64
}

// File is a Dockerfile that can be built.
type File struct {
	// Stages are all of them, in order; Target is the index of the one that the image is of.
	Stages []Stage
	Target int

	lex      *shell.Lex
	given    map[string]string
	platform map[string]string
	global   map[string]string // what ARG before the first FROM set
}

// Stage is one stage of a Dockerfile.
type Stage struct {
	Name string // "" if it has none
	Line int
	// Parent is the index of the stage that it begins with; below 0: it begins with the image From.
	Parent int
	From   string

	commands []instructions.Command
	escape   rune
}

// Scratch is the image without a file.
const Scratch = "scratch"

// Parse reads a Dockerfile. What it says of lines is fault.Invalid, or fault.Unsupported, with the line's number.
func Parse(text []byte, o Options) (*File, error) {
	if len(text) > MaxBytes {
		return nil, fault.New(fault.Invalid, "the Dockerfile has %d bytes, more than %d", len(text), MaxBytes)
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, fault.New(fault.Invalid, "the Dockerfile is not a text in UTF-8")
	}
	if len(o.Args) > maxArgs {
		return nil, fault.New(fault.Invalid, "there are %d build arguments, more than %d", len(o.Args), maxArgs)
	}
	parsed, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, located(err)
	}
	if len(parsed.AST.Children) > maxSteps {
		return nil, fault.New(fault.Invalid, "the Dockerfile has %d instructions, more than %d", len(parsed.AST.Children), maxSteps)
	}
	stages, meta, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return nil, located(err)
	}
	f := &File{lex: shell.NewLex(parsed.EscapeToken), given: o.Args, global: make(map[string]string)}
	f.platform = map[string]string{
		"TARGETPLATFORM": "linux/" + o.Arch, "TARGETOS": "linux", "TARGETARCH": o.Arch, "TARGETVARIANT": "",
		"BUILDPLATFORM": "linux/" + o.Arch, "BUILDOS": "linux", "BUILDARCH": o.Arch, "BUILDVARIANT": "",
	}
	if len(stages) == 0 {
		return nil, fault.New(fault.Invalid, "the Dockerfile has no FROM, so that there is nothing to begin with").WithRemedy("begin it with a line such as: FROM python")
	}
	for i := range meta {
		if err := f.declare(f.global, f.platform, &meta[i], nil); err != nil {
			return nil, err
		}
	}
	for i := range stages {
		if err := f.stage(stages[i], parsed.EscapeToken); err != nil {
			return nil, err
		}
	}
	if f.Target, err = f.target(o.Target); err != nil {
		return nil, err
	}
	if err := f.unused(meta, stages); err != nil {
		return nil, err
	}
	return f, f.refuse()
}

// located is an error of the parser's with its line.
func located(err error) error {
	line := 0
	if le, ok := errors.AsType[*parser.LocationError](err); ok && len(le.Locations) > 0 && len(le.Locations[0]) > 0 {
		line = le.Locations[0][0].Start.Line
	}
	says := err.Error()
	if unknown, ok := errors.AsType[*instructions.UnknownInstructionError](err); ok {
		says = unknown.Error()
	}
	for {
		if rest, ok := strings.CutPrefix(says, "dockerfile parse error "); ok {
			at, what, _ := strings.Cut(rest, ": ")
			if n, cerr := strconv.Atoi(strings.TrimPrefix(at, "on line ")); cerr == nil {
				line, says = n, what
				continue
			}
		}
		break
	}
	return bad(line, "%s", says)
}

// bad is an error of a line.
func bad(line int, format string, args ...any) *fault.Error {
	return fault.New(fault.Invalid, "line %d of the Dockerfile: %s", line, fmt.Sprintf(format, args...))
}

// cannot is a line that is right and is not done here.
func cannot(line int, format string, args ...any) *fault.Error {
	return fault.New(fault.Unsupported, "line %d of the Dockerfile: %s", line, fmt.Sprintf(format, args...))
}

func lineOf(ranges []parser.Range) int {
	if len(ranges) == 0 {
		return 0
	}
	return ranges[0].Start.Line
}

// declare sets what an ARG names: to what the caller gives, to what is known already, or to its default.
func (f *File) declare(into, known map[string]string, c *instructions.ArgCommand, env map[string]string) error {
	for _, a := range c.Args {
		line := lineOf(c.Location())
		if !validName(a.Key) {
			return bad(line, "%s is not a valid name of a variable", quoted(a.Key))
		}
		given, isGiven := f.given[a.Key]
		was, isKnown := known[a.Key]
		switch {
		case isGiven:
			into[a.Key] = given
		case a.Value != nil:
			value, err := f.expand(line, *a.Value, known, into, env)
			if err != nil {
				return err
			}
			into[a.Key] = value
		case isKnown:
			into[a.Key] = was
		}
	}
	return nil
}

// expand replaces variables in a word; later maps go before earlier ones.
func (f *File) expand(line int, word string, vars ...map[string]string) (string, error) {
	all := make(map[string]string)
	for _, m := range vars {
		maps.Copy(all, m)
	}
	out, err := process(f.lex, word, all)
	if err != nil {
		return "", bad(line, "%s", err)
	}
	return out, nil
}

// Bounds of what a word becomes, in bytes, and of a variable in it.
const (
	maxExpanded = 4 << 20
	maxValue    = 64 << 10
)

// replaces is a variable in which a text is replaced.
var replaces = regexp.MustCompile(`\$\{[A-Za-z0-9_]+/`)

// process replaces variables in a word. It refuses before what would become too much: variables of variables grow by
// each line, and a replacement by the product of both.
func process(lex *shell.Lex, word string, vars map[string]string) (string, error) {
	n := strings.Count(word, "$")
	if n == 0 {
		out, _, err := lex.ProcessWord(word, lookup(vars))
		return out, err
	}
	longest := 1
	for _, v := range vars {
		longest = max(longest, len(v))
	}
	most := n*longest + len(word)
	if replaces.MatchString(word) {
		most = n*longest*len(word) + len(word)
	}
	if longest > maxValue || most > maxExpanded {
		return "", fmt.Errorf("its variables could make more than %d bytes of it, or have more than %d", maxExpanded, maxValue)
	}
	out, _, err := lex.ProcessWord(word, lookup(vars))
	return out, err
}

// lookup are variables as the shell's lexer asks for them.
type lookup map[string]string

func (l lookup) Get(name string) (string, bool) { v, ok := l[name]; return v, ok }

func (l lookup) Keys() []string { return slices.Sorted(maps.Keys(l)) }

func (f *File) stage(s instructions.Stage, escape rune) error {
	line := lineOf(s.Location)
	from, err := f.expand(line, s.BaseName, f.platform, f.global)
	if err != nil {
		return err
	}
	if from == "" {
		return bad(line, "FROM %s names no image: a variable in it is empty", s.BaseName)
	}
	platform, err := f.expand(line, s.Platform, f.platform, f.global)
	if err != nil {
		return err
	}
	if own := f.platform["TARGETPLATFORM"]; platform != "" && platform != own {
		return cannot(line, "FROM --platform=%s is another machine than this one, %s", platform, own).WithRemedy("leave --platform out")
	}
	out := Stage{Name: s.Name, Line: line, Parent: -1, From: from, commands: s.Commands, escape: escape}
	for i := range f.Stages {
		if f.Stages[i].Name != "" && strings.EqualFold(f.Stages[i].Name, from) {
			out.Parent, out.From = i, ""
		}
	}
	f.Stages = append(f.Stages, out)
	return nil
}

// target returns the index of the stage that is wanted.
func (f *File) target(want string) (int, error) {
	if want == "" {
		return len(f.Stages) - 1, nil
	}
	if i, ok := f.find(want, len(f.Stages)); ok {
		return i, nil
	}
	var names []string
	for i := range f.Stages {
		if n := f.Stages[i].Name; n != "" {
			names = append(names, n)
		}
	}
	return 0, fault.InvalidField("target", "%s is not a stage of the Dockerfile, which has %d: %s", quoted(want), len(f.Stages), strings.Join(names, ", "))
}

// find returns the stage before a given one that a name or a number means.
func (f *File) find(name string, before int) (int, bool) {
	for i := before - 1; i >= 0; i-- {
		if f.Stages[i].Name != "" && strings.EqualFold(f.Stages[i].Name, name) {
			return i, true
		}
	}
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n < before {
		return n, true
	}
	return 0, false
}

// unused refuses a build argument that no ARG names: most often it is misspelt.
func (f *File) unused(meta []instructions.ArgCommand, stages []instructions.Stage) error {
	named := make(map[string]bool)
	for i := range meta {
		for _, a := range meta[i].Args {
			named[a.Key] = true
		}
	}
	for i := range stages {
		for _, c := range stages[i].Commands {
			if arg, ok := c.(*instructions.ArgCommand); ok {
				for _, a := range arg.Args {
					named[a.Key] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		if !named[name] {
			return fault.InvalidField("build_args", "%s is not an ARG of the Dockerfile", quoted(name)).
				WithRemedy("use one of: %s; or leave it out", strings.Join(slices.Sorted(maps.Keys(named)), ", "))
		}
		if strings.ContainsRune(f.given[name], 0) {
			return fault.InvalidField("build_args", "the value of %s has a zero byte", quoted(name))
		}
	}
	return nil
}

// validName reports whether a variable can have the name.
func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && len(s) <= 200
}

// quoted is a text of the Dockerfile's or the caller's for a message.
func quoted(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return strconv.Quote(s)
}
