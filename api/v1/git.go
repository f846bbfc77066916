// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// GitAt says where in a sandbox git runs.
type GitAt struct {
	Path           string   `json:"path,omitempty" jsonschema:"a directory of the repository, below /workspace if it is relative; left out: /workspace itself"`
	AsUser         string   `json:"as_user,omitempty" jsonschema:"an account of the sandbox, by name or number; the default is its own user"`
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty" jsonschema:"git is ended then; left out: 30 minutes, or the most that the server gives a command"`
}

// GitLogin says who asks a repository's server, and how.
type GitLogin struct {
	Username    *string `json:"username,omitempty" jsonschema:"for a server that asks by HTTP; told to it alone"`
	Password    *string `json:"password,omitempty" jsonschema:"of username; told to that server alone, and in no record; programs that run in the sandbox meanwhile may see it"`
	Token       *string `json:"token,omitempty" jsonschema:"in the place of a password, for any username"`
	CA          string  `json:"ca,omitempty" jsonschema:"authorities for the server's certificate beside those of the sandbox, in PEM; for this request alone"`
	InsecureTLS bool    `json:"insecure_tls,omitempty" jsonschema:"take any certificate"`
}

// GitClone asks for a repository in a sandbox.
type GitClone struct {
	URL    string  `json:"url" jsonschema:"an address by https, http, ssh or git, or a path inside the sandbox; a user and a password in it are taken for username and password"`
	Path   *string `json:"path,omitempty" jsonschema:"the directory to clone into, missing or empty, below /workspace if it is relative; left out: the name of the repository"`
	Branch *string `json:"branch,omitempty" jsonschema:"a branch or a tag; left out: the server's choice"`
	Commit *string `json:"commit,omitempty" jsonschema:"a commit to check out, at least 4 hexadecimal digits"`
	Depth  *int    `json:"depth,omitempty" jsonschema:"how many commits of the history; left out: all of it"`
	GitLogin
	AsUser         string   `json:"as_user,omitempty" jsonschema:"an account of the sandbox, by name or number; the default is its own user"`
	TimeoutSeconds *float64 `json:"timeout_seconds,omitempty" jsonschema:"git is ended then; left out: 30 minutes, or the most that the server gives a command"`
}

// GitCloned is a repository that was cloned.
type GitCloned struct {
	URL    string `json:"url" jsonschema:"without credentials"`
	Path   string `json:"path"`
	Commit string `json:"commit,omitempty" jsonschema:"that is checked out; absent where the repository has none"`
	Branch string `json:"branch,omitempty" jsonschema:"absent where a commit is checked out, and no branch"`
}

// GitStatus is what has changed in a repository.
type GitStatus struct {
	Root      string          `json:"root" jsonschema:"the directory of the working tree, below which the paths are"`
	Commit    string          `json:"commit,omitempty" jsonschema:"that is checked out; absent where there is none yet"`
	Branch    string          `json:"branch,omitempty" jsonschema:"absent where a commit is checked out, and no branch"`
	Detached  bool            `json:"detached"`
	Upstream  string          `json:"upstream,omitempty" jsonschema:"as origin/main"`
	Published bool            `json:"published" jsonschema:"the upstream is there, as far as is known here"`
	Ahead     int             `json:"ahead" jsonschema:"commits that the upstream has not"`
	Behind    int             `json:"behind" jsonschema:"commits that it has besides"`
	Clean     bool            `json:"clean" jsonschema:"no file differs"`
	Files     []GitFileStatus `json:"files"`
	Truncated bool            `json:"truncated" jsonschema:"there are more files, of which at most 10,000 are told"`
}

// GitFileStatus is a file that differs.
type GitFileStatus struct {
	Path      string `json:"path" jsonschema:"below root"`
	From      string `json:"from,omitempty" jsonschema:"where it was that was renamed or copied"`
	Index     string `json:"index" jsonschema:"how the index differs from the commit: unmodified, modified, type_changed, added, deleted, renamed, copied, unmerged, untracked"`
	Worktree  string `json:"worktree" jsonschema:"how the file differs from the index, in the same words"`
	Submodule bool   `json:"submodule,omitempty"`
}

// GitAdd asks that files be in the next commit.
type GitAdd struct {
	GitAt
	Files []string `json:"files,omitempty" jsonschema:"paths as they are, no patterns; a directory is all that is in it"`
	All   bool     `json:"all,omitempty" jsonschema:"all that has changed, and no files"`
	Force bool     `json:"force,omitempty" jsonschema:"also what is ignored"`
}

// GitCommit asks for a commit.
type GitCommit struct {
	GitAt
	Message    string `json:"message,omitempty" jsonschema:"needed, unless amend keeps that of the last commit"`
	Author     string `json:"author,omitempty" jsonschema:"the name of the author and committer; left out: what the configuration says"`
	Email      string `json:"email,omitempty" jsonschema:"goes with author"`
	All        bool   `json:"all,omitempty" jsonschema:"add what has changed of the files that git knows"`
	Amend      bool   `json:"amend,omitempty" jsonschema:"in the place of the last commit"`
	AllowEmpty bool   `json:"allow_empty,omitempty" jsonschema:"also where nothing has changed"`
	SkipHooks  bool   `json:"skip_hooks,omitempty" jsonschema:"run none of the repository's hooks"`
}

// GitHead is what is checked out.
type GitHead struct {
	Commit string `json:"commit,omitempty" jsonschema:"absent where there is none yet"`
	Branch string `json:"branch,omitempty" jsonschema:"absent where a commit is checked out, and no branch"`
}

// GitPush asks that a server have what a branch has.
type GitPush struct {
	GitAt
	GitLogin
	Remote      string `json:"remote,omitempty" jsonschema:"its name; left out: origin"`
	URL         string `json:"url,omitempty" jsonschema:"the address that the remote has to be at, else nothing is sent: its configuration is the sandbox's"`
	Branch      string `json:"branch,omitempty" jsonschema:"left out: the one that is checked out"`
	To          string `json:"to,omitempty" jsonschema:"its name at the server; left out: the same"`
	SetUpstream bool   `json:"set_upstream,omitempty"`
	Force       bool   `json:"force,omitempty" jsonschema:"whatever the server has"`
	Delete      bool   `json:"delete,omitempty" jsonschema:"delete the branch at the server"`
	Tags        bool   `json:"tags,omitempty" jsonschema:"all tags, too"`
	SkipHooks   bool   `json:"skip_hooks,omitempty" jsonschema:"run no hook before; with credentials none runs"`
}

// GitPushed is what a server did.
type GitPushed struct {
	Remote string         `json:"remote"`
	URL    string         `json:"url" jsonschema:"without credentials"`
	Refs   []GitPushedRef `json:"refs"`
}

// GitPushedRef is what became of one name at a server.
type GitPushedRef struct {
	Name   string `json:"name" jsonschema:"as refs/heads/main"`
	State  string `json:"state" jsonschema:"created, updated, forced, deleted or up_to_date"`
	Detail string `json:"detail" jsonschema:"in git's words"`
}

// GitPull asks for what a server has.
type GitPull struct {
	GitAt
	GitLogin
	Remote    string `json:"remote,omitempty" jsonschema:"its name; left out: that of the branch's upstream, or origin"`
	URL       string `json:"url,omitempty" jsonschema:"the address that the remote has to be at, else nothing is sent: its configuration is the sandbox's"`
	Branch    string `json:"branch,omitempty" jsonschema:"at the server; left out: the upstream's, or one of the same name"`
	Mode      string `json:"mode,omitempty" jsonschema:"merge (the default), rebase or ff_only"`
	SkipHooks bool   `json:"skip_hooks,omitempty" jsonschema:"run none of the repository's hooks"`
}

// GitPulled is what a pull did.
type GitPulled struct {
	Remote string `json:"remote"`
	URL    string `json:"url" jsonschema:"without credentials"`
	Branch string `json:"branch" jsonschema:"at the server"`
	Before string `json:"before,omitempty" jsonschema:"the commit that was checked out; absent where there was none"`
	Commit string `json:"commit" jsonschema:"that is now"`
}

// GitBranch is a branch.
type GitBranch struct {
	Name     string     `json:"name" jsonschema:"as main, or origin/main of a remote"`
	Remote   bool       `json:"remote,omitempty"`
	Commit   string     `json:"commit,omitempty" jsonschema:"absent where there is none yet"`
	Upstream string     `json:"upstream,omitempty"`
	Current  bool       `json:"current" jsonschema:"it is checked out"`
	At       *time.Time `json:"at,omitempty" jsonschema:"when the commit was made"`
}

// GitBranches is the branches of a repository.
type GitBranches struct {
	Items     []GitBranch `json:"items"`
	Current   string      `json:"current,omitempty" jsonschema:"the one that is checked out; it need not be among them, as where it has no commit yet"`
	Truncated bool        `json:"truncated"`
}

// GitCreateBranch asks for a branch.
type GitCreateBranch struct {
	GitAt
	Name     string `json:"name"`
	Start    string `json:"start,omitempty" jsonschema:"the revision that it starts at; left out: HEAD"`
	Force    bool   `json:"force,omitempty" jsonschema:"move one that is there"`
	Checkout bool   `json:"checkout,omitempty" jsonschema:"check it out"`
}

// GitCheckout asks for another branch or commit in the working tree.
type GitCheckout struct {
	GitAt
	Target    string `json:"target" jsonschema:"a branch, which is made if only one remote has it; with detach any revision"`
	Create    bool   `json:"create,omitempty" jsonschema:"make the branch"`
	Start     string `json:"start,omitempty" jsonschema:"with create the revision that it starts at; left out: HEAD"`
	Detach    bool   `json:"detach,omitempty" jsonschema:"check the commit out, and no branch"`
	Force     bool   `json:"force,omitempty" jsonschema:"changes that are in no commit are lost"`
	SkipHooks bool   `json:"skip_hooks,omitempty" jsonschema:"run none of the repository's hooks"`
}

// GitLog is commits, the newest first.
type GitLog struct {
	Items []GitLogCommit `json:"items"`
	More  bool           `json:"more" jsonschema:"there are others after them; skip goes on"`
}

// GitLogCommit is a commit.
type GitLogCommit struct {
	Commit    string    `json:"commit"`
	Parents   []string  `json:"parents"`
	Author    GitPerson `json:"author"`
	Committer GitPerson `json:"committer"`
	Message   string    `json:"message"`
}

// GitPerson made a commit.
type GitPerson struct {
	Name  string     `json:"name"`
	Email string     `json:"email"`
	At    *time.Time `json:"at,omitempty" jsonschema:"absent where the commit has no date that is one"`
}

// GitInit asks for an empty repository.
type GitInit struct {
	GitAt
	Branch string `json:"branch,omitempty" jsonschema:"the first one; left out: what the configuration says"`
	Bare   bool   `json:"bare,omitempty" jsonschema:"without a working tree"`
}

// GitInitialized is a repository that is there.
type GitInitialized struct {
	Existed bool   `json:"existed" jsonschema:"it was there before, and stayed as it was"`
	Branch  string `json:"branch"`
}

// GitReset asks that a branch be at another commit, or that files be in the index as they are there.
type GitReset struct {
	GitAt
	Mode   string   `json:"mode,omitempty" jsonschema:"soft, mixed (the default), hard, merge or keep"`
	Target string   `json:"target,omitempty" jsonschema:"a revision; left out: HEAD"`
	Files  []string `json:"files,omitempty" jsonschema:"these in the index, and the branch stays; with the mode mixed"`
}

// GitRestore asks that files be as they were.
type GitRestore struct {
	GitAt
	Files    []string `json:"files" jsonschema:"paths as they are, no patterns; a directory is all that is in it"`
	Staged   bool     `json:"staged,omitempty" jsonschema:"in the index"`
	Worktree bool     `json:"worktree,omitempty" jsonschema:"in the working tree; neither means this"`
	Source   string   `json:"source,omitempty" jsonschema:"a revision; left out: the index, or HEAD with staged"`
}

// GitRemote is a repository elsewhere.
type GitRemote struct {
	Name    string `json:"name"`
	URL     string `json:"url" jsonschema:"without a password"`
	PushURL string `json:"push_url,omitempty" jsonschema:"absent where it is the same"`
}

// GitRemotes is the remotes of a repository.
type GitRemotes struct {
	Items []GitRemote `json:"items"`
}

// GitAddRemote asks that a repository know another.
type GitAddRemote struct {
	GitAt
	Name      string `json:"name"`
	URL       string `json:"url" jsonschema:"without credentials, which push and pull take"`
	Overwrite bool   `json:"overwrite,omitempty" jsonschema:"give one that is there this address"`
}

// GitConfig is a value of git's configuration.
type GitConfig struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// GitSetConfig asks for a value of git's configuration. It is kept in a file inside, and is no place for credentials.
type GitSetConfig struct {
	GitAt
	Key   string `json:"key" jsonschema:"as user.name"`
	Value string `json:"value"`
	Scope string `json:"scope,omitempty" jsonschema:"local (the default), global or system"`
}
