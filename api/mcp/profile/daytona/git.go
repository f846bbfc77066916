// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"net/url"
	"strings"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
)

func clone() toolset.Tool {
	return toolset.Tool{
		Name: "git_clone", Title: "Clone a repository", Destructive: true, OpenWorld: true,
		About: "Clone a Git repository into a sandbox.",
		Params: []toolset.Param{
			words().Which(),
			{Name: "url", Kind: toolset.Text, Required: true, About: "Of the repository.", Aliases: []string{"repository", "repo"}},
			{Name: "path", Kind: toolset.Text, Field: "path", About: "Directory to clone into, default /workspace itself, which has to be empty then."},
			{Name: "branch", Kind: toolset.Text, About: "Branch or tag."},
			{Name: "commitId", Kind: toolset.Text, About: "Commit to check out.", Aliases: []string{"commit_id", "commit"}},
			{Name: "username", Kind: toolset.Text, About: "For a repository that asks who it is, by HTTP."},
			{Name: "password", Kind: toolset.Text, About: "Password or token of username. Programs in the sandbox may see it."},
		},
		Example: `{"id": "an-id", "url": "https://example.org/app.git", "path": "app"}`,
		Run:     git,
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

func git(ctx context.Context, c *toolset.Call) (*toolset.Answer, error) {
	a, w := c.Args, words()
	w.In(c)
	address, path, commit := needs(a, "url"), a.Text("path"), a.Text("commitId")
	if path == "" {
		path = "."
	}
	if strings.Trim(strings.ToLower(commit), "0123456789abcdef") != "" || commit != "" && (len(commit) < 4 || len(commit) > mostCommit) {
		a.Add("commitId", "%q is not a valid commit id: 4 to %d hexadecimal digits", toolset.Clip(commit), mostCommit)
	}
	branch := a.Text("branch")
	if strings.HasPrefix(branch, "-") {
		a.Add("branch", "%q is not a valid branch name", toolset.Clip(branch))
	}
	address, options, env := credentials(a, address)
	if err := a.Err(); err != nil {
		return nil, err
	}
	argv := append([]string{"git"}, options...)
	argv = append(argv, "clone")
	if branch != "" {
		argv = append(argv, "--branch", branch)
	}
	argv = append(argv, "--", address, path)
	env["GIT_TERMINAL_PROMPT"] = "0" // nobody is there to be asked
	if err := runGit(ctx, c, w, engine.ExecRequest{Argv: argv, Env: env}, "cloning"); err != nil {
		return nil, err
	}
	if commit != "" {
		if err := runGit(ctx, c, w, engine.ExecRequest{Argv: []string{"git", "checkout", "--quiet", "--detach", commit}, Cwd: path}, "checking out "+commit); err != nil {
			return nil, err
		}
	}
	return toolset.TextAnswer("Cloned repository: " + address + " to " + toolset.PrintablePath(path)), nil
}

// credentials takes who asks out of the arguments and out of the address, and gives
// what git needs to say it, to that host alone.
func credentials(a *toolset.Args, address string) (bare string, options []string, env map[string]string) {
	user, password := a.Text("username"), a.Text("password")
	env = make(map[string]string)
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		if user != "" || password != "" {
			a.Add("url", "is not an HTTP address, and username and password are for those alone; leave them out")
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
		a.Add("password", "or username has a line break in it")
	}
	key := "credential." + u.Scheme + "://" + u.Host + ".helper="
	env[gitUser], env[gitPassword] = user, password
	return address, []string{"-c", key, "-c", key + gitHelper}, env
}

// runGit runs a command of git's, whose failure is an error that has what git said.
func runGit(ctx context.Context, c *toolset.Call, w *toolset.Words, r engine.ExecRequest, doing string) error {
	r.Timeout = min(toolset.DefaultTimeout, c.Server.MostCommandTime())
	done, notes, err := w.Whole(ctx, c, r)
	if err != nil || done.ExitCode == 0 {
		return err
	}
	said := strings.TrimSpace(done.Stderr.Text)
	if len(notes) > 0 {
		said += "\n" + strings.Join(notes, "\n")
	}
	return fault.New(fault.State, "error %s: git ended with exit code %d: %s", doing, done.ExitCode, said).
		WithRemedy("see what git says; path names another directory, and a sandbox reaches what its network allows")
}
