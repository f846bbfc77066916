// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skill

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of front matter. YAML that is within them is read in next to no time and memory.
const (
	maxHead  = 16 << 10 // bytes
	maxDepth = 8
	maxNodes = 1000
	maxTags  = 32
	maxTools = 100
	maxLine  = 500 // characters of a field that has no bound of its own
)

var nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// CheckName checks the name of a skill. field is what the caller calls it.
func CheckName(field, name string) error {
	switch {
	case name == "":
		return fault.InvalidField(field, "is missing; a skill has a name of 1 to %d lower-case letters, digits and hyphens", MaxName)
	case len(name) > MaxName:
		return fault.InvalidField(field, "%q is not a valid name of a skill: it has %d characters, and at most %d are allowed", sandbox.Clip(name, 80), utf8.RuneCountInString(name), MaxName)
	case !nameForm.MatchString(name):
		return fault.InvalidField(field, "%q is not a valid name of a skill: use lower-case letters and digits, with single hyphens between them", sandbox.Clip(name, 80))
	case sandbox.ValidRunID(name):
		return fault.InvalidField(field, "%q is not a valid name of a skill: it has the form of an id", name)
	}
	return nil
}

// readText checks a SKILL.md and returns what its front matter says.
func readText(data []byte) (Meta, error) {
	if len(data) > MaxText {
		return Meta{}, fault.New(fault.TooLarge, "%s has %d bytes, and at most %d are allowed", File, len(data), MaxText).
			WithRemedy("move parts of it into files beside it, which an agent reads when it needs them")
	}
	if !utf8.Valid(data) || strings.ContainsRune(string(data), 0) {
		return Meta{}, wrong("%s is not text in UTF-8", File)
	}
	head, ok := headOf(string(data))
	if !ok {
		return Meta{}, wrong("%s does not begin with front matter: a line ---, lines such as name: my-skill and description: …, and a line ---", File).WithReason(ReasonFrontMatter)
	}
	if len(head) > maxHead {
		return Meta{}, wrong("the front matter of %s has %d bytes, and at most %d are allowed", File, len(head), maxHead)
	}
	return readHead(head)
}

// headOf returns what stands between the two lines of hyphens that a text begins with.
func headOf(text string) (head string, ok bool) {
	text = strings.TrimPrefix(text, "\ufeff")
	first, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(first, " \t\r") != "---" {
		return "", false
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\r\n") == "---" {
			return rest[:at], true
		}
		at += len(line)
	}
	return "", false
}

// Reasons of errors about a skill that cannot be read, see [fault.ReasonOf].
const (
	ReasonNoFile      = "skill_file_missing"   // there is no SKILL.md where one has to be
	ReasonManyFiles   = "skill_file_ambiguous" // there are several, in directories beside each other
	ReasonFrontMatter = "skill_front_matter"   // what SKILL.md begins with cannot be read
	ReasonNoField     = "skill_field_missing"  // it has no name, or no description
)

// wrong is the error of a skill that is not one.
func wrong(format string, args ...any) *fault.Error {
	return fault.InvalidField("skill", format, args...).WithRemedy("mend it and send it again; docs/skills.md says what a skill is made of")
}

func readHead(head string) (m Meta, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(head), &doc); err != nil {
		return m, wrong("the front matter of %s is not YAML: %s", File, sandbox.Clip(strings.TrimPrefix(err.Error(), "yaml: "), 200)).WithReason(ReasonFrontMatter)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return m, wrong("the front matter of %s is not a list of fields such as name: my-skill", File).WithReason(ReasonFrontMatter)
	}
	nodes := 0
	if err := plain(doc.Content[0], 1, &nodes); err != nil {
		return m, err
	}
	h := fieldsOf(doc.Content[0])
	extra := h.fields("metadata")
	m = Meta{
		Name: h.text(maxLine, "name"), Description: h.text(MaxDescription, "description"),
		Author: h.or(extra, "author"), Version: h.or(extra, "version"),
		License: h.text(maxLine, "license"), Compatibility: h.text(maxLine, "compatibility"),
		Tags: h.list(maxTags, ",", "tags"), AllowedTools: h.list(maxTools, ", ", "allowed-tools", "allowed_tools"),
	}
	if m.Tags == nil {
		m.Tags = extra.list(maxTags, ",", "tags")
	}
	switch {
	case h.err != nil:
		return m, h.err
	case extra.err != nil:
		return m, extra.err
	case m.Name == "":
		return m, wrong("the front matter of %s has no name", File).WithReason(ReasonNoField)
	case m.Description == "":
		return m, wrong("the front matter of %s has no description, by which an agent decides whether to use the skill", File).WithReason(ReasonNoField)
	}
	if err := CheckName("name", m.Name); err != nil {
		return m, err
	}
	return m, nil
}

// plain refuses what front matter has no use for: aliases, by which a few lines become gigabytes, types of
// its writer's own, the same field twice, and what is too deep or too much.
func plain(n *yaml.Node, depth int, nodes *int) error {
	*nodes++
	switch {
	case depth > maxDepth:
		return wrong("the front matter of %s is more than %d levels deep (line %d)", File, maxDepth, n.Line)
	case *nodes > maxNodes:
		return wrong("the front matter of %s has more than %d values", File, maxNodes)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return wrong("the front matter of %s has an anchor or an alias (line %d), which are not allowed", File, n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return wrong("the front matter of %s names a type, %q (line %d), which is not allowed", File, sandbox.Clip(n.Tag, 40), n.Line)
	}
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
				return wrong("the front matter of %s has a field whose name is not a word (line %d)", File, k.Line)
			}
			if seen[k.Value] {
				return wrong("the front matter of %s has the field %q twice (line %d)", File, sandbox.Clip(k.Value, 40), k.Line)
			}
			seen[k.Value] = true
		}
	}
	for _, c := range n.Content {
		if err := plain(c, depth+1, nodes); err != nil {
			return err
		}
	}
	return nil
}

// fields are those of a mapping, with the first error in reading them.
type fields struct {
	by  map[string]*yaml.Node
	err error
}

func fieldsOf(n *yaml.Node) *fields {
	f := &fields{by: make(map[string]*yaml.Node)}
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			f.by[n.Content[i].Value] = n.Content[i+1]
		}
	}
	return f
}

func (f *fields) fields(name string) *fields { return fieldsOf(f.by[name]) }

func (f *fields) bad(n *yaml.Node, name, format string, args ...any) {
	if f.err == nil {
		f.err = wrong("the field %s in the front matter of %s (line %d) %s", name, File, n.Line, fmt.Sprintf(format, args...))
	}
}

// find returns the first field that has one of the names and says something.
func (f *fields) find(names []string) (string, *yaml.Node) {
	for _, name := range names {
		if n := f.by[name]; n != nil && n.Tag != "!!null" {
			return name, n
		}
	}
	return "", nil
}

// text returns a field that is one value of at most so many characters.
func (f *fields) text(most int, names ...string) string {
	name, n := f.find(names)
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode {
		f.bad(n, name, "is not a text")
		return ""
	}
	return f.word(n, name, most)
}

func (f *fields) word(n *yaml.Node, name string, most int) string {
	s := strings.TrimSpace(n.Value)
	if c := utf8.RuneCountInString(s); c > most {
		f.bad(n, name, "has %d characters, and at most %d are allowed", c, most)
		return ""
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
		f.bad(n, name, "has a control character in it")
		return ""
	}
	return s
}

// or returns a field, or that of the same name in others, where the format's description has it.
func (f *fields) or(others *fields, name string) string {
	if s := f.text(maxLine, name); s != "" {
		return s
	}
	return others.text(maxLine, name)
}

// list returns a field that is a list of words, or a text with separators between them that are in no
// parentheses: "Bash(git add:*), Read".
func (f *fields) list(most int, separators string, names ...string) []string {
	name, n := f.find(names)
	if n == nil {
		return nil
	}
	var out []string
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if c.Kind != yaml.ScalarNode {
				f.bad(c, name, "is not a list of words")
				return nil
			}
			if s := f.word(c, name, maxLine); s != "" {
				out = append(out, s)
			}
		}
	case yaml.ScalarNode:
		depth := 0
		out = strings.FieldsFunc(f.word(n, name, maxHead), func(r rune) bool {
			switch r {
			case '(':
				depth++
			case ')':
				depth = max(0, depth-1)
			}
			return depth == 0 && (r == '\n' || strings.ContainsRune(separators, r))
		})
		for i := range out {
			out[i] = strings.TrimSpace(out[i])
		}
		out = slices.DeleteFunc(out, func(s string) bool { return s == "" })
	default:
		f.bad(n, name, "is not a list of words")
	}
	if len(out) > most {
		f.bad(n, name, "has %d entries, and at most %d are allowed", len(out), most)
		return nil
	}
	return out
}

// Compose returns the text of a SKILL.md with front matter that has a name and a description.
func Compose(name, description, body string) (string, error) {
	head, err := yaml.Marshal(struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}{name, description})
	if err != nil {
		return "", wrong("its description cannot be written as YAML")
	}
	return "---\n" + string(head) + "---\n\n" + strings.TrimLeft(body, "\n"), nil
}

// HasHead reports whether a text begins with front matter.
func HasHead(text string) bool {
	_, ok := headOf(text)
	return ok
}

// OfText returns the text of a SKILL.md that is given as text, beside which a name and a description may be: they are its
// front matter where it has none, and have to be what it says where it has. The error is about skill_md_content, name or
// description.
func OfText(text string, name, description *string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", fault.InvalidField("skill_md_content", "is empty; a skill is the text of its SKILL.md")
	}
	if !HasHead(text) {
		if name == nil || description == nil {
			return "", fault.InvalidField("skill_md_content", "has no front matter, which says the name and the description of the skill").
				WithReason(ReasonNoField).WithRemedy("begin it with front matter, or send name and description beside it")
		}
		if err := CheckName("name", *name); err != nil {
			return "", err
		}
		return Compose(*name, *description, text)
	}
	p, err := Read([]byte(text))
	if err != nil {
		return "", err
	}
	if name != nil && *name != p.Name {
		return "", differs("name", *name, p.Name)
	}
	if description != nil && strings.TrimSpace(*description) != p.Description {
		return "", differs("description", *description, p.Description)
	}
	return text, nil
}

func differs(field, said, has string) error {
	return fault.InvalidField(field, "%q is not what the front matter of skill_md_content says, %q", sandbox.Clip(said, 80), sandbox.Clip(has, 80)).
		WithRemedy("leave it out, or send what the front matter says")
}
