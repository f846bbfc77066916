// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

// GitClone asks for a clone.
type GitClone struct {
	URL         string  `json:"url"`
	Path        string  `json:"path"`
	Branch      *string `json:"branch"`
	CommitID    *string `json:"commit_id"`
	Username    *string `json:"username"`
	Password    *string `json:"password"`
	InsecureTLS *bool   `json:"insecure_skip_tls"`
	Depth       *int    `json:"depth"`
}

// GitChange is what the other operations are asked: each reads the fields that it has.
type GitChange struct {
	Path          *string  `json:"path"`
	Files         []string `json:"files"`
	Message       *string  `json:"message"`
	Author        *string  `json:"author"`
	Email         *string  `json:"email"`
	AllowEmpty    *bool    `json:"allow_empty"`
	Branch        *string  `json:"branch"`
	Name          *string  `json:"name"`
	Username      *string  `json:"username"`
	Password      *string  `json:"password"`
	Remote        *string  `json:"remote"`
	SetUpstream   *bool    `json:"set_upstream"`
	Bare          *bool    `json:"bare"`
	InitialBranch *string  `json:"initial_branch"`
	Mode          *string  `json:"mode"`
	Target        *string  `json:"target"`
	Source        *string  `json:"source"`
	Staged        *bool    `json:"staged"`
	Worktree      *bool    `json:"worktree"`
	URL           *string  `json:"url"`
	Fetch         *bool    `json:"fetch"`
	Overwrite     *bool    `json:"overwrite"`
	Key           *string  `json:"key"`
	Value         *string  `json:"value"`
	Scope         *string  `json:"scope"`
	Host          *string  `json:"host"`
	Protocol      *string  `json:"protocol"`
}

// GitStatus is how a working tree differs from its commit.
type GitStatus struct {
	CurrentBranch   string          `json:"currentBranch"`
	FileStatus      []GitFileStatus `json:"fileStatus"`
	Ahead           int             `json:"ahead"`
	Behind          int             `json:"behind"`
	BranchPublished bool            `json:"branchPublished"`
	Detached        bool            `json:"detached"`
	Upstream        string          `json:"upstream,omitempty"`
}

// GitFileStatus is a file that differs, in long words.
type GitFileStatus struct {
	Name     string `json:"name"`
	Staging  string `json:"staging"`
	Worktree string `json:"worktree"`
	Extra    string `json:"extra"` // where it was that was renamed
}

// GitBranches are the branches of a repository.
type GitBranches struct {
	Branches []string `json:"branches"`
	Current  string   `json:"current,omitempty"`
}

// GitCommit is a commit of the history.
type GitCommit struct {
	Hash      string `json:"hash"`
	Author    string `json:"author"`
	Email     string `json:"email"`
	Message   string `json:"message"`
	Timestamp string `json:"timestamp"`
}

// GitCommitted is a commit that was made.
type GitCommitted struct {
	Hash string `json:"hash"`
}

// GitRemote is another repository that one knows.
type GitRemote struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// GitRemotes are those of a repository.
type GitRemotes struct {
	Remotes []GitRemote `json:"remotes"`
}

// GitValue is a value of the configuration; nil: there is none.
type GitValue struct {
	Value *string `json:"value"`
}
