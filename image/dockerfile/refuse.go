// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerfile

import (
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// refuse refuses what is not done here, in the stages that the target needs.
func (f *File) refuse() error {
	for _, i := range f.needed() {
		for _, c := range f.Stages[i].commands {
			if err := refused(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// needed returns the stages that the target needs, in order.
func (f *File) needed() []int {
	need := make([]bool, len(f.Stages))
	need[f.Target] = true
	var all []int
	for i := len(f.Stages) - 1; i >= 0; i-- {
		if !need[i] {
			continue
		}
		all = append([]int{i}, all...)
		s := &f.Stages[i]
		if s.Parent >= 0 {
			need[s.Parent] = true
		}
		for _, c := range s.commands {
			if cp, ok := c.(*instructions.CopyCommand); ok && cp.From != "" {
				if at, ok := f.find(cp.From, i); ok {
					need[at] = true
				}
			}
		}
	}
	return all
}

// refused returns why a command is not done here; nil: it is.
func refused(c instructions.Command) error {
	line := lineOf(c.Location())
	switch c := c.(type) {
	case *instructions.RunCommand:
		return refusedRun(c, line)
	case *instructions.CopyCommand:
		if c.Parents {
			return cannot(line, "COPY --parents is not done here").WithRemedy("copy each directory to its place by a COPY of its own")
		}
		if len(c.ExcludePatterns) > 0 {
			return cannot(line, "COPY --exclude is not done here").WithRemedy("write what is to stay out into .dockerignore")
		}
	case *instructions.AddCommand:
		switch {
		case c.Checksum != "", c.KeepGitDir != nil, c.Unpack != nil:
			return cannot(line, "ADD with --checksum, --keep-git-dir or --unpack is not done here").WithRemedy("fetch it by RUN, or have the file in the context and use ADD or COPY without them")
		case len(c.ExcludePatterns) > 0:
			return cannot(line, "ADD --exclude is not done here").WithRemedy("write what is to stay out into .dockerignore")
		}
		for _, s := range c.SourcePaths {
			if remote(s) {
				return cannot(line, "ADD takes nothing from an address, and %s is one", quoted(s)).WithRemedy("have the file in the context, or fetch it by RUN from where the host's package tools are set to")
			}
		}
	case *instructions.EnvCommand, *instructions.LabelCommand, *instructions.MaintainerCommand, *instructions.WorkdirCommand, *instructions.CmdCommand,
		*instructions.EntrypointCommand, *instructions.ExposeCommand, *instructions.UserCommand, *instructions.ArgCommand, *instructions.ShellCommand:
	case *instructions.HealthCheckCommand:
		return cannot(line, "HEALTHCHECK is not done here: no server looks after a command of an image").WithRemedy("leave it out")
	case *instructions.OnbuildCommand:
		return cannot(line, "ONBUILD is not done here: it is for images that others begin with").WithRemedy("write the instruction into the Dockerfiles that begin with this image")
	case *instructions.StopSignalCommand:
		return cannot(line, "STOPSIGNAL is not done here: commands are ended by SIGTERM, then SIGKILL").WithRemedy("leave it out")
	case *instructions.VolumeCommand:
		return cannot(line, "VOLUME is not done here: a sandbox gets its volumes when it is made").WithRemedy("leave it out, and use: sandpit create --volume")
	default:
		return cannot(line, "%s is not done here", c.Name())
	}
	return nil
}

func refusedRun(c *instructions.RunCommand, line int) error {
	for _, flag := range c.FlagsUsed {
		switch flag {
		case "mount":
			return cannot(line, "RUN --mount is not done here: there is no cache, secret or other mount in a step").
				WithRemedy("leave it out: steps are cached as a whole; COPY what the step needs")
		default:
			return cannot(line, "RUN --%s is not done here: each step has the network of builds, and the rights of its user", flag).WithRemedy("leave it out")
		}
	}
	if len(c.Files) == 0 {
		return nil
	}
	if !c.PrependShell || len(c.CmdLine) != 1 {
		return bad(line, "a here-document belongs to a RUN in the shell's form")
	}
	if parser.MustParseHeredoc(c.CmdLine[0]) != nil && strings.HasPrefix(c.Files[0].Data, "#!") {
		return cannot(line, "a here-document that names its program by #! is not done here").WithRemedy("write it as: RUN python3 - <<EOF")
	}
	return nil
}

// remote reports whether ADD would fetch a source.
func remote(s string) bool {
	for _, scheme := range []string{"http://", "https://", "git://", "ssh://", "git@", "ftp://"} {
		if strings.HasPrefix(strings.ToLower(s), scheme) {
			return true
		}
	}
	return strings.HasPrefix(s, "github.com/")
}
