// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"net/url"
	"strings"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

func daytonaClone() tool {
	return tool{
		name: "git_clone", title: "Clone a repository", destructive: true, openWorld: true,
		about: "Clone a Git repository into a sandbox.",
		params: []param{
			daytonaWords().which(),
			{name: "url", kind: text, required: true, about: "Of the repository.", aliases: []string{"repository", "repo"}},
			{name: "path", kind: text, field: "path", about: "Directory to clone into, default /workspace itself, which has to be empty then."},
			{name: "branch", kind: text, about: "Branch or tag."},
			{name: "commitId", kind: text, about: "Commit to check out.", aliases: []string{"commit_id", "commit"}},
			{name: "username", kind: text, about: "For a repository that asks who it is, by HTTP."},
			{name: "password", kind: text, about: "Password or token of username. Programs in the sandbox may see it."},
		},
		example: `{"id": "an-id", "url": "https://example.org/app.git", "path": "app"}`,
		run:     daytonaGit,
	}
}

// Variables that git's helper takes credentials from. They are in no command line, which
// is recorded, and in no file.
const (
	gitUser     = "SANDPIT_GIT_USER"
	gitPassword = "SANDPIT_GIT_PASSWORD"
)

const gitHelper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$` + gitUser + `" "$` + gitPassword + `"; }; f`

// mostCommit is the length of the longest commit id.
const mostCommit = 64

func daytonaGit(ctx context.Context, c *call) (*answer, error) {
	a, w := c.args, daytonaWords()
	w.in(c)
	address, path, commit := a.needs("url"), a.text("path"), a.text("commitId")
	if path == "" {
		path = "."
	}
	if strings.Trim(strings.ToLower(commit), "0123456789abcdef") != "" || commit != "" && (len(commit) < 4 || len(commit) > mostCommit) {
		a.add("commitId", "%q is not a valid commit id: 4 to %d hexadecimal digits", clip(commit), mostCommit)
	}
	branch := a.text("branch")
	if strings.HasPrefix(branch, "-") {
		a.add("branch", "%q is not a valid branch name", clip(branch))
	}
	address, options, env := credentials(a, address)
	if err := a.err(); err != nil {
		return nil, err
	}
	argv := append([]string{"git"}, options...)
	argv = append(argv, "clone")
	if branch != "" {
		argv = append(argv, "--branch", branch)
	}
	argv = append(argv, "--", address, path)
	env["GIT_TERMINAL_PROMPT"] = "0" // nobody is there to be asked
	if err := c.git(ctx, w, engine.ExecRequest{Argv: argv, Env: env}, "cloning"); err != nil {
		return nil, err
	}
	if commit != "" {
		if err := c.git(ctx, w, engine.ExecRequest{Argv: []string{"git", "checkout", "--quiet", "--detach", commit}, Cwd: path}, "checking out "+commit); err != nil {
			return nil, err
		}
	}
	return inText("Cloned repository: " + address + " to " + printablePath(path)), nil
}

// credentials takes who asks out of the arguments and out of the address, and gives
// what git needs to say it, to that host alone.
func credentials(a *args, address string) (bare string, options []string, env map[string]string) {
	user, password := a.text("username"), a.text("password")
	env = make(map[string]string)
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		if user != "" || password != "" {
			a.add("url", "is none of HTTP, which alone username and password are for")
		}
		return address, nil, env
	}
	if u.User != nil { // it would stay in the repository's configuration
		if user == "" {
			user = u.User.Username()
		}
		if p, ok := u.User.Password(); ok && password == "" {
			password = p
		}
		u.User = nil
		address = u.String()
	}
	if user == "" && password == "" {
		return address, nil, env
	}
	if user == "" {
		user = "git" // tokens go with any
	}
	if strings.ContainsAny(user+password, "\r\n\x00") {
		a.add("password", "or username has a line break in it")
	}
	key := "credential." + u.Scheme + "://" + u.Host + ".helper="
	env[gitUser], env[gitPassword] = user, password
	return address, []string{"-c", key, "-c", key + gitHelper}, env
}

// git runs a command of git's, whose failure is an error that has what git said.
func (c *call) git(ctx context.Context, w *words, r engine.ExecRequest, doing string) error {
	r.Timeout = min(defaultTimeout, c.engine.MostCommandTime())
	done, notes, err := w.whole(ctx, c, r)
	if err != nil || done.ExitCode == 0 {
		return err
	}
	said := strings.TrimSpace(done.stderr.text)
	if len(notes) > 0 {
		said += "\n" + strings.Join(notes, "\n")
	}
	return fault.New(fault.State, "error %s: git ended with exit code %d: %s", doing, done.ExitCode, said).
		WithRemedy("see what git says; path names another directory, and a sandbox reaches what its network allows")
}
