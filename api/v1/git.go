// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// GitClone asks for a repository in a sandbox.
type GitClone struct {
	URL            string   `json:"url" jsonschema:"an address by https, http, ssh or git, or a path inside the sandbox; a user and a password in it are taken for username and password"`
	Path           *string  `json:"path,omitempty" jsonschema:"the directory to clone into, missing or empty, below /workspace if it is relative; left out: the name of the repository"`
	Branch         *string  `json:"branch,omitempty" jsonschema:"a branch or a tag; left out: the server's choice"`
	Commit         *string  `json:"commit,omitempty" jsonschema:"a commit to check out, at least 4 hexadecimal digits"`
	Depth          *int     `json:"depth,omitempty" jsonschema:"how many commits of the history; left out: all of it"`
	Username       *string  `json:"username,omitempty" jsonschema:"for a server that asks by HTTP; told to it alone"`
	Password       *string  `json:"password,omitempty" jsonschema:"of username; told to that server alone, and in no record; programs that run in the sandbox meanwhile may see it"`
	Token          *string  `json:"token,omitempty" jsonschema:"in the place of a password, for any username"`
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty" jsonschema:"git is ended then; left out: 30 minutes, or the most that the server gives a command"`
}

// GitCloned is a repository that was cloned.
type GitCloned struct {
	URL    string `json:"url" jsonschema:"without credentials"`
	Path   string `json:"path"`
	Commit string `json:"commit,omitempty" jsonschema:"that is checked out; absent where the repository has none"`
	Branch string `json:"branch,omitempty" jsonschema:"absent where a commit is checked out, and no branch"`
}
