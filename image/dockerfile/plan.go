// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"

	"sandpit.dev/image/oci"
)

// State is what holds at a point of a stage.
type State struct {
	Config oci.Config
	Shell  []string // nil: /bin/sh -c
}

// Plan is a stage with its variables expanded.
type Plan struct {
	Steps []Step
	State State // at its end
}

// Kind is what a step does.
type Kind string

// The kinds of steps.
const (
	Run  Kind = "run"
	Copy Kind = "copy" // also ADD
	Dir  Kind = "dir"  // WORKDIR
)

// Step is one that changes files. All that is exported but Line and Title decides what it makes.
type Step struct {
	Line  int    `json:"-"`
	Title string `json:"-"` // the instruction, in one line

	Kind Kind
	User string // of the image, as USER has it; "" is root
	Dir  string // absolute: where a command begins, what a path is relative to, or what is made

	// Of a Run.
	Argv []string          `json:",omitempty"`
	Env  map[string]string `json:",omitempty"` // all variables, ARG included

	// Of a Copy.
	From    string   `json:"-"` // a stage or an image; "": the context
	Stage   int      `json:"-"` // its index, if From is a stage; else below 0
	Sources []string `json:",omitempty"`
	Files   []Inline `json:",omitempty"`
	Dest    string   `json:",omitempty"` // absolute; it ends in a slash if it is a directory
	Chown   string   `json:",omitempty"`
	Chmod   string   `json:",omitempty"`
	Unpack  bool     `json:",omitempty"` // archives are unpacked, as ADD does
}

// Inline is a file that stands in the Dockerfile.
type Inline struct{ Name, Data string }

// defaultPath is what holds where neither the image nor the Dockerfile sets PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// planner goes through the commands of a stage.
type planner struct {
	f     *File
	index int
	state State
	env   map[string]string // ENV of the image and the stage so far
	args  map[string]string
	cmd   bool // this stage has a CMD
	steps []Step
}

// Plan returns what a stage does to the state that it begins with: that of its image, or of its parent's end.
func (f *File) Plan(index int, base State) (*Plan, error) {
	p := &planner{f: f, index: index, state: base, env: make(map[string]string), args: make(map[string]string)}
	c := &p.state.Config
	c.Env, c.Labels, c.Ports = slices.Clone(c.Env), maps.Clone(c.Labels), slices.Clone(c.Ports)
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		p.env[name] = value
	}
	if p.env["PATH"] == "" {
		p.set("PATH", defaultPath)
	}
	for _, cmd := range f.Stages[index].commands {
		if err := p.command(cmd); err != nil {
			return nil, err
		}
	}
	if err := oci.CheckConfig(p.state.Config); err != nil {
		return nil, err
	}
	return &Plan{Steps: p.steps, State: p.state}, nil
}

// set sets a variable of the image.
func (p *planner) set(name, value string) {
	p.env[name] = value
	c := &p.state.Config
	for i, kv := range c.Env {
		if n, _, _ := strings.Cut(kv, "="); n == name {
			c.Env[i] = name + "=" + value
			return
		}
	}
	c.Env = append(c.Env, name+"="+value)
}

func (p *planner) command(cmd instructions.Command) error {
	line := lineOf(cmd.Location())
	expand := func(word string) (string, error) { return process(p.f.lex, word, p.vars()) }
	// A stage may be planned for more than one that begins with it, and Expand changes what it is called on.
	cmd = copied(cmd)
	if c, ok := cmd.(instructions.SupportsSingleWordExpansion); ok {
		if _, isArg := cmd.(*instructions.ArgCommand); !isArg {
			if err := c.Expand(expand); err != nil {
				return bad(line, "%s", err)
			}
		}
	}
	if c, ok := cmd.(instructions.SupportsSingleWordExpansionRaw); ok {
		raw := shell.NewLex('\\')
		raw.SkipProcessQuotes = true
		if err := c.ExpandRaw(func(word string) (string, error) { return process(raw, word, p.vars()) }); err != nil {
			return bad(line, "%s", err)
		}
	}
	c := &p.state.Config
	switch cmd := cmd.(type) {
	case *instructions.ArgCommand:
		known := maps.Clone(p.f.platform)
		maps.Copy(known, p.f.global)
		return p.f.declareIn(p.args, known, cmd, p.env)
	case *instructions.EnvCommand:
		for _, kv := range cmd.Env {
			if !validName(kv.Key) {
				return cannot(line, "%s is not a name that a variable of a sandbox can have", quoted(kv.Key)).WithRemedy("use letters, digits and _, and no digit first")
			}
			p.set(kv.Key, kv.Value)
		}
	case *instructions.LabelCommand:
		for _, kv := range cmd.Labels {
			p.label(kv.Key, kv.Value)
		}
	case *instructions.MaintainerCommand:
		p.label("maintainer", cmd.Maintainer)
	case *instructions.WorkdirCommand:
		if cmd.Path == "" {
			return bad(line, "WORKDIR names no directory")
		}
		c.WorkingDir = absolute(p.dir(), cmd.Path)
		p.add(Step{Line: line, Title: title(cmd), Kind: Dir, Dir: c.WorkingDir})
	case *instructions.UserCommand:
		c.User = cmd.User
	case *instructions.ShellCommand:
		if len(cmd.Shell) == 0 {
			return bad(line, "SHELL names no program")
		}
		p.state.Shell = cmd.Shell
	case *instructions.CmdCommand:
		c.Cmd, p.cmd = p.words(cmd.ShellDependantCmdLine), true
	case *instructions.EntrypointCommand:
		c.Entrypoint = p.words(cmd.ShellDependantCmdLine)
		if !p.cmd {
			c.Cmd = nil // the base's was for another entry point
		}
	case *instructions.ExposeCommand:
		return p.expose(line, cmd.Ports)
	case *instructions.RunCommand:
		p.add(Step{Line: line, Title: title(cmd), Kind: Run, User: c.User, Dir: p.dir(), Argv: p.words(cmd.ShellDependantCmdLine), Env: p.vars()})
	case *instructions.CopyCommand:
		return p.copyFiles(line, Step{Title: title(cmd), From: cmd.From, Chown: cmd.Chown, Chmod: cmd.Chmod}, cmd.SourcesAndDest)
	case *instructions.AddCommand:
		for _, s := range cmd.SourcePaths {
			if remote(s) { // a variable made it one
				return cannot(line, "ADD takes nothing from an address, and %s is one", quoted(s)).WithRemedy("have the file in the context")
			}
		}
		return p.copyFiles(line, Step{Title: title(cmd), Chown: cmd.Chown, Chmod: cmd.Chmod, Unpack: true}, cmd.SourcesAndDest)
	}
	return nil
}

// vars are the variables that words are expanded by: an ENV goes before an ARG of its name.
func (p *planner) vars() map[string]string {
	all := maps.Clone(p.args)
	maps.Copy(all, p.env)
	return all
}

// declareIn declares an ARG of a stage: what the platform and the first lines know, it knows by its name alone.
func (f *File) declareIn(args, known map[string]string, c *instructions.ArgCommand, env map[string]string) error {
	for i := range c.Args {
		one := &instructions.ArgCommand{Args: c.Args[i : i+1]}
		key := c.Args[i].Key
		from := make(map[string]string)
		if v, ok := known[key]; ok {
			from[key] = v
		}
		if !validName(key) {
			return bad(lineOf(c.Location()), "%s is not a valid name of a variable", quoted(key))
		}
		if err := f.declare(args, from, one, env); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) add(s Step) { p.steps = append(p.steps, s) }

func (p *planner) dir() string {
	if p.state.Config.WorkingDir == "" {
		return "/"
	}
	return path.Clean("/" + p.state.Config.WorkingDir)
}

func (p *planner) label(name, value string) {
	if p.state.Config.Labels == nil {
		p.state.Config.Labels = make(map[string]string)
	}
	p.state.Config.Labels[name] = value
}

// words are those of a command: of a shell, if it is in the shell's form.
func (p *planner) words(c instructions.ShellDependantCmdLine) []string {
	argv := slices.Clone(c.CmdLine)
	if len(c.Files) > 0 && len(argv) == 1 {
		if parser.MustParseHeredoc(argv[0]) != nil {
			argv[0] = c.Files[0].Data
			if c.Files[0].Chomp {
				argv[0] = parser.ChompHeredocContent(argv[0])
			}
		} else {
			for _, file := range c.Files {
				argv[0] += "\n" + file.Data + file.Name
			}
		}
	}
	if !c.PrependShell {
		return argv
	}
	program := p.state.Shell
	if program == nil {
		program = []string{"/bin/sh", "-c"}
	}
	return append(slices.Clone(program), strings.Join(argv, " "))
}

// expose notes ports: 80, 80/udp or 8000-8010.
func (p *planner) expose(line int, ports []string) error {
	c := &p.state.Config
	for _, text := range ports {
		span, proto, ok := strings.Cut(strings.ToLower(text), "/")
		if !ok {
			proto = "tcp"
		}
		first, last, ranged := strings.Cut(span, "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || from == 0 || to < from || to-from > 255 || proto != "tcp" && proto != "udp" && proto != "sctp" {
			return bad(line, "%s is not a valid port: write 80, 80/udp, or 8000-8010 for at most 256 of them", quoted(text))
		}
		for n := from; n <= to; n++ {
			if port := fmt.Sprintf("%d/%s", n, proto); !slices.Contains(c.Ports, port) {
				c.Ports = append(c.Ports, port)
			}
		}
	}
	slices.Sort(c.Ports)
	return nil
}

func (p *planner) copyFiles(line int, s Step, sd instructions.SourcesAndDest) error {
	s.Line, s.Kind, s.Stage, s.Dir = line, Copy, -1, p.dir()
	if s.From != "" {
		if at, ok := p.f.find(s.From, p.index); ok {
			s.Stage = at
		} else if s.From == Scratch {
			return bad(line, "COPY --from=scratch has no file to copy")
		}
		if len(sd.SourceContents) > 0 {
			return bad(line, "a file that stands in the Dockerfile is not one of --from")
		}
	}
	s.Sources = slices.Clone(sd.SourcePaths)
	for _, one := range sd.SourceContents {
		s.Files = append(s.Files, Inline{one.Path, one.Data})
	}
	s.Dest = absolute(p.dir(), sd.DestPath)
	if sd.DestPath == "" {
		return bad(line, "the destination is empty")
	}
	// A directory is meant by a slash at the end, by a dot, and by more sources than one.
	slash := strings.HasSuffix(sd.DestPath, "/") || path.Base(sd.DestPath) == "." || path.Base(sd.DestPath) == ".."
	if several := len(s.Sources)+len(s.Files) > 1; several && !slash {
		return bad(line, "there are %d sources, so that the destination has to be a directory, which ends in a slash", len(s.Sources)+len(s.Files))
	}
	if slash && s.Dest != "/" {
		s.Dest += "/"
	}
	if s.Chmod != "" {
		if n, err := strconv.ParseUint(s.Chmod, 8, 32); err != nil || n > 0o1777 {
			return cannot(line, "--chmod=%s is not an octal number up to 1777", quoted(s.Chmod)).WithRemedy("write it as 755; set others bits by RUN chmod")
		}
	}
	p.add(s)
	return nil
}

// absolute is a path, which may be relative to dir.
func absolute(dir, name string) string {
	if !path.IsAbs(name) {
		name = dir + "/" + name
	}
	return path.Clean(name)
}

// title is an instruction in one line.
func title(c instructions.Command) string {
	text := c.Name()
	if s, ok := c.(fmt.Stringer); ok {
		text = s.String()
	}
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > 120 {
		text = string(r[:119]) + "…"
	}
	return text
}

// copied is a command whose fields can be changed.
func copied(c instructions.Command) instructions.Command {
	switch c := c.(type) {
	case *instructions.EnvCommand:
		d := *c
		d.Env = slices.Clone(c.Env)
		return &d
	case *instructions.LabelCommand:
		d := *c
		d.Labels = slices.Clone(c.Labels)
		return &d
	case *instructions.WorkdirCommand:
		d := *c
		return &d
	case *instructions.UserCommand:
		d := *c
		return &d
	case *instructions.ExposeCommand:
		d := *c
		d.Ports = slices.Clone(c.Ports)
		return &d
	case *instructions.CopyCommand:
		d := *c
		d.SourcePaths, d.SourceContents = slices.Clone(c.SourcePaths), slices.Clone(c.SourceContents)
		return &d
	case *instructions.AddCommand:
		d := *c
		d.SourcePaths, d.SourceContents = slices.Clone(c.SourcePaths), slices.Clone(c.SourceContents)
		return &d
	}
	return c
}
