// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"sandpit.dev/fault"
	"sandpit.dev/internal/spelling"
)

// Bounds of an entry.
const (
	maxFile     = 256 << 10 // bytes of its file
	maxContent  = 1 << 20   // bytes of a file that it brings along
	maxList     = 256       // elements of a list
	maxText     = 64 << 10  // bytes of a command
	maxTitle    = 300
	defaultTime = 30 * time.Minute // of a command
	maxTime     = time.Hour
)

// keys are those of an entry.
var keys = []string{"name", "title", "aliases", "base", "apt", "pip", "npm", "files", "env", "run", "check", "network", "start"}

var (
	fileKeys = []string{"path", "content", "from", "mode", "user"}
	runKeys  = []string{"run", "user", "timeout", "dir"}
)

// parser reads one file. where is how messages name it.
type parser struct {
	where string
	dir   fs.FS // where files that it names are; nil: nowhere
}

func (p *parser) bad(at *yaml.Node, format string, args ...any) *fault.Error {
	line := 1
	if at != nil {
		line = at.Line
	}
	return fault.New(fault.Invalid, "%s:%d: %s", p.where, line, fmt.Sprintf(format, args...))
}

// Parse reads an entry. where names the file in messages; dir has the files that it names by from,
// nil: none.
func Parse(where string, text []byte, dir fs.FS) (Entry, error) {
	p := &parser{where: where, dir: dir}
	if len(text) > maxFile {
		return Entry{}, p.bad(nil, "the file has %d bytes, more than %d", len(text), maxFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return Entry{}, p.bad(nil, "the file is empty")
		}
		return Entry{}, fault.New(fault.Invalid, "%s: %v", p.where, err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return Entry{}, p.bad(nil, "the file has more than one document")
	}
	fields, err := p.mapping(doc.Content[0], "an entry", keys)
	if err != nil {
		return Entry{}, err
	}
	return p.entry(fields, doc.Content[0])
}

// mapping returns the values of a mapping with these keys.
func (p *parser) mapping(n *yaml.Node, what string, known []string) (map[string]*yaml.Node, error) {
	if n.Kind != yaml.MappingNode {
		return nil, p.bad(n, "%s is a mapping with the keys %s", what, strings.Join(known, ", "))
	}
	out := make(map[string]*yaml.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !slices.Contains(known, key.Value) || key.Kind != yaml.ScalarNode {
			return nil, p.bad(key, "%s is not a key of %s%s", shown(key.Value), what, meant(key.Value, known)).
				WithRemedy("use some of %s", strings.Join(known, ", "))
		}
		if out[key.Value] != nil {
			return nil, p.bad(key, "%s is given twice", key.Value)
		}
		if value.Kind == yaml.AliasNode {
			return nil, p.bad(value, "%s is a reference to another place of the file; write it out", key.Value)
		}
		out[key.Value] = value
	}
	return out, nil
}

// meant proposes the nearest of some words, as a piece of a sentence.
func meant(word string, known []string) string {
	if len(word) > 64 || len(known) == 0 {
		return ""
	}
	best := slices.MinFunc(known, func(a, b string) int {
		return cmp.Compare(spelling.Distance(word, a), spelling.Distance(word, b))
	})
	if spelling.Distance(word, best) > 2 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

func shown(s string) string {
	if len(s) > 64 {
		s = strings.ToValidUTF8(s[:64], "") + "…"
	}
	return strconv.Quote(s)
}

func (p *parser) entry(f map[string]*yaml.Node, top *yaml.Node) (Entry, error) {
	e := Entry{Source: p.where}
	var err error
	if e.Name, err = p.text(f["name"], "name", 63); err != nil {
		return e, err
	}
	switch {
	case e.Name == "":
		return e, p.bad(top, "the entry has no name")
	case !entryName.MatchString(e.Name) || slices.Contains([]string{"default", "cache"}, e.Name):
		return e, p.bad(f["name"], "%s is not a valid name of an image: use lower-case letters, digits, dots and hyphens, a letter first, neither default nor cache", shown(e.Name))
	}
	if e.Title, err = p.text(f["title"], "title", maxTitle); err != nil {
		return e, err
	}
	if strings.ContainsFunc(e.Title, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return e, p.bad(f["title"], "title is more than one line of text")
	}
	if e.Base, err = p.text(f["base"], "base", 255); err != nil {
		return e, err
	}
	if e.Base == "" {
		return e, p.bad(top, "the entry %s has no base, the name of the image that it begins with", e.Name)
	}
	if e.Aliases, err = p.list(f["aliases"], "aliases", func(s string) string {
		if !alias.MatchString(s) {
			return "is not a valid name of an image"
		}
		return ""
	}); err != nil {
		return e, err
	}
	if e.Env, err = p.env(f["env"]); err != nil {
		return e, err
	}
	if err := p.network(f["network"], &e); err != nil {
		return e, err
	}
	if err := p.packages(f, &e); err != nil {
		return e, err
	}
	if err := p.files(f["files"], &e); err != nil {
		return e, err
	}
	if err := p.run(f["run"], "run", &e); err != nil {
		return e, err
	}
	if err := p.run(f["check"], "check", &e); err != nil {
		return e, err
	}
	if e.Start, err = p.start(f["start"]); err != nil {
		return e, err
	}
	if len(e.Steps) == 0 && len(e.Env) == 0 && e.Start == nil {
		return e, p.bad(top, "the entry %s adds nothing to %s: give apt, pip, npm, files, run, env or start", e.Name, e.Base)
	}
	if len(e.Env) > 0 {
		for i := range e.Steps {
			e.Steps[i].Env = maps.Clone(e.Env)
		}
	}
	return e, nil
}

func (p *parser) text(n *yaml.Node, what string, most int) (string, error) {
	if n == nil {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", p.bad(n, "%s is a text", what)
	}
	if len(n.Value) > most {
		return "", p.bad(n, "%s has %d bytes, more than %d", what, len(n.Value), most)
	}
	return n.Value, nil
}

// start reads the start command: a text for a shell, or a program and its arguments.
func (p *parser) start(n *yaml.Node) ([]string, error) {
	if n == nil {
		return nil, nil
	}
	if n.Kind == yaml.ScalarNode {
		text, err := p.text(n, "start", maxText)
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) {
			return nil, p.bad(n, "start is empty, or has a zero byte")
		}
		return []string{"/bin/sh", "-c", text}, nil
	}
	all, err := p.elements(n, "start")
	if err != nil {
		return nil, err
	}
	var argv []string
	for _, c := range all {
		arg, err := p.text(c, "an element of start", maxText)
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(arg, 0) {
			return nil, p.bad(c, "start has a zero byte")
		}
		argv = append(argv, arg)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, p.bad(n, "start has no program")
	}
	return argv, nil
}

// elements returns the elements of a list.
func (p *parser) elements(n *yaml.Node, what string) ([]*yaml.Node, error) {
	if n == nil {
		return nil, nil
	}
	if n.Kind != yaml.SequenceNode {
		return nil, p.bad(n, "%s is a list", what)
	}
	if len(n.Content) > maxList {
		return nil, p.bad(n, "%s has %d elements, more than %d", what, len(n.Content), maxList)
	}
	for _, c := range n.Content {
		if c.Kind == yaml.AliasNode {
			return nil, p.bad(c, "%s refers to another place of the file; write it out", what)
		}
	}
	return n.Content, nil
}

// list reads a list of texts, of each of which wrong says what is wrong, "" for nothing.
func (p *parser) list(n *yaml.Node, what string, wrong func(string) string) ([]string, error) {
	all, err := p.elements(n, what)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range all {
		s, err := p.text(c, "an element of "+what, 255)
		if err != nil {
			return nil, err
		}
		if why := wrong(s); why != "" {
			return nil, p.bad(c, "%s: %s %s", what, shown(s), why)
		}
		if slices.Contains(out, s) {
			return nil, p.bad(c, "%s: %s is given twice", what, shown(s))
		}
		out = append(out, s)
	}
	return out, nil
}

func (p *parser) env(n *yaml.Node) (map[string]string, error) {
	if n == nil {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, p.bad(n, "env is a mapping of names to values")
	}
	out := make(map[string]string)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !envName.MatchString(key.Value) || len(key.Value) > 128 {
			return nil, p.bad(key, "env: %s is not a valid name of a variable", shown(key.Value))
		}
		v, err := p.text(value, "env."+key.Value, 8<<10)
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(v, 0) {
			return nil, p.bad(value, "env.%s has a zero byte", key.Value)
		}
		if _, twice := out[key.Value]; twice {
			return nil, p.bad(key, "env.%s is given twice", key.Value)
		}
		out[key.Value] = v
	}
	return out, nil
}

// network takes what has a dot for a host, and else for the name of a list.
func (p *parser) network(n *yaml.Node, e *Entry) error {
	all, err := p.list(n, "network", func(s string) string {
		if !host.MatchString(s) {
			return "is neither the name of a preset nor of a host"
		}
		return ""
	})
	for _, s := range all {
		if strings.Contains(s, ".") {
			e.Domains = append(e.Domains, s)
		} else {
			e.Presets = append(e.Presets, s)
		}
	}
	return err
}

func (p *parser) files(n *yaml.Node, e *Entry) error {
	all, err := p.elements(n, "files")
	if err != nil || len(all) == 0 {
		return err
	}
	step := Step{Title: "files", User: root}
	for _, c := range all {
		file, err := p.file(c)
		if err != nil {
			return err
		}
		step.Files = append(step.Files, file)
	}
	e.Steps = append(e.Steps, step)
	return nil
}

func (p *parser) file(n *yaml.Node) (File, error) {
	f, err := p.mapping(n, "a file", fileKeys)
	if err != nil {
		return File{}, err
	}
	out := File{Mode: 0o644, User: root}
	if out.Path, err = p.text(f["path"], "path", 4095); err != nil {
		return out, err
	}
	if !path.IsAbs(out.Path) || path.Clean(out.Path) != out.Path || out.Path == "/" || strings.ContainsRune(out.Path, 0) {
		return out, p.bad(n, "%s is not a valid path of a file: it begins with a slash and has no .. in it", shown(out.Path))
	}
	if (f["content"] == nil) == (f["from"] == nil) {
		return out, p.bad(n, "the file %s has either content or from, the name of a file beside this one", shown(out.Path))
	}
	if f["content"] != nil {
		text, err := p.text(f["content"], "content", maxContent)
		if err != nil {
			return out, err
		}
		out.Content = []byte(text)
	} else if out.Content, err = p.beside(f["from"]); err != nil {
		return out, err
	}
	if f["mode"] != nil {
		// The text as it is written: YAML takes 0755 and 755 for different numbers.
		mode, err := strconv.ParseUint(f["mode"].Value, 8, 32)
		if err != nil || mode == 0 || mode > 0o777 {
			return out, p.bad(f["mode"], "%s is not a valid mode: write three octal digits such as 755", shown(f["mode"].Value))
		}
		out.Mode = fs.FileMode(mode)
	}
	if f["user"] != nil {
		if out.User, err = p.user(f["user"]); err != nil {
			return out, err
		}
	}
	return out, nil
}

// beside reads a regular file beside this one.
func (p *parser) beside(n *yaml.Node) ([]byte, error) {
	name, err := p.text(n, "from", 255)
	if err != nil {
		return nil, err
	}
	if p.dir == nil || !fs.ValidPath(name) || name == "." {
		return nil, p.bad(n, "%s is not the name of a file beside this one", shown(name))
	}
	info, err := fs.Stat(p.dir, name)
	if err != nil {
		return nil, p.bad(n, "the file %s cannot be read: %v", shown(name), errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() || info.Size() > maxContent {
		return nil, p.bad(n, "%s is not a file of at most %d bytes", shown(name), maxContent)
	}
	b, err := fs.ReadFile(p.dir, name)
	if err != nil || len(b) > maxContent {
		return nil, p.bad(n, "the file %s cannot be read as one of at most %d bytes", shown(name), maxContent)
	}
	return b, nil
}

// The users of a sandbox.
const (
	root    = "root"
	sandbox = "sandbox"
)

func (p *parser) user(n *yaml.Node) (string, error) {
	if n.Value != root && n.Value != sandbox {
		return "", p.bad(n, "%s is not a valid user: use root or sandbox", shown(n.Value))
	}
	return n.Value, nil
}

// run reads commands of a shell. Those of check run as the sandbox's user.
func (p *parser) run(n *yaml.Node, what string, e *Entry) error {
	all, err := p.elements(n, what)
	if err != nil {
		return err
	}
	for _, c := range all {
		s := Step{User: root, Timeout: defaultTime}
		if what == "check" {
			s.User = sandbox
		}
		text := c
		if c.Kind == yaml.MappingNode {
			f, err := p.mapping(c, "a command", runKeys)
			if err != nil {
				return err
			}
			if text = f["run"]; text == nil {
				return p.bad(c, "the command has no run, its text")
			}
			if f["user"] != nil {
				if s.User, err = p.user(f["user"]); err != nil {
					return err
				}
			}
			if s.Dir, err = p.text(f["dir"], "dir", 4095); err != nil {
				return err
			}
			if s.Dir != "" && (!path.IsAbs(s.Dir) || strings.ContainsRune(s.Dir, 0)) {
				return p.bad(f["dir"], "%s is not a valid directory: it begins with a slash", shown(s.Dir))
			}
			if f["timeout"] != nil {
				if s.Timeout, err = time.ParseDuration(f["timeout"].Value); err != nil || s.Timeout <= 0 || s.Timeout > maxTime {
					return p.bad(f["timeout"], "%s is not a valid time: write one such as 10m, at most %v", shown(f["timeout"].Value), maxTime)
				}
			}
		}
		script, err := p.text(text, what, maxText)
		if err != nil {
			return err
		}
		if strings.TrimSpace(script) == "" || strings.ContainsRune(script, 0) {
			return p.bad(text, "the command is empty, or has a zero byte")
		}
		s.Title = what + ": " + line(script)
		s.Commands = [][]string{{"/bin/sh", "-e", "-c", script}}
		e.Steps = append(e.Steps, s)
	}
	return nil
}

// line is the beginning of a text, as one line for people.
func line(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
