// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"regexp"
	"strings"

	"sandpit.dev/fault"
)

// The reasons of errors: what a program decides by, as [fault.Error.Reason].
const (
	ReasonCredentials  = "git_credentials"   // the server wants others than it got, or some
	ReasonNoRepository = "git_no_repository" // the server has none there, or the directory is in none
	ReasonNoBranch     = "git_no_branch"
	ReasonBranchExists = "git_branch_exists"
	ReasonRejected     = "git_rejected"    // what is to be pushed does not follow what the server has
	ReasonDirty        = "git_dirty"       // changes that are in no commit would be lost
	ReasonConflict     = "git_conflict"    // what is to be merged does not fit, or is not resolved yet
	ReasonUnreachable  = "git_unreachable" // the server does not answer, or is not who it should be
	ReasonRefused      = "git_refused"     // the server could, and does not allow it

	ReasonDiverged   = "git_diverged" // a merge would be needed, or there is nothing in common
	ReasonNoCommit   = "git_no_commit"
	ReasonNoPath     = "git_no_path" // git knows no such file
	ReasonNoRemote   = "git_no_remote"
	ReasonNoValue    = "git_no_value" // of the configuration
	ReasonNoIdentity = "git_no_identity"
	ReasonNothing    = "git_nothing_to_commit"
	ReasonNotMerged  = "git_not_merged"
	ReasonInUse      = "git_in_use" // by another command, or the branch is checked out
	ReasonDetached   = "git_detached"
	ReasonOwner      = "git_owner"   // the repository is another user's
	ReasonMissing    = "git_missing" // the image has no git
)

// Reasons lists every reason.
func Reasons() []string {
	return []string{
		ReasonCredentials, ReasonNoRepository, ReasonNoBranch, ReasonBranchExists, ReasonRejected, ReasonDirty, ReasonConflict, ReasonUnreachable, ReasonRefused,
		ReasonDiverged, ReasonNoCommit, ReasonNoPath, ReasonNoRemote, ReasonNoValue, ReasonNoIdentity, ReasonNothing, ReasonNotMerged, ReasonInUse, ReasonDetached, ReasonOwner, ReasonMissing,
	}
}

// meaning is what a failure of git's is to a caller.
type meaning struct {
	reason string
	code   fault.Code
	remedy string
}

// finding is a meaning, and how git words it in English. All are of releases 2.25 to 2.51.
type finding struct {
	*regexp.Regexp
	meaning
}

const seeRemedy = "see what git says; path names another directory, and a sandbox reaches what its network allows"

// Meanings that other files use, too.
var (
	rejected    = meaning{ReasonRejected, fault.Conflict, "pull what the server has first, and push again; force overwrites it"}
	refused     = meaning{ReasonRefused, fault.State, "see what the server says; another branch, or other credentials, may be allowed"}
	noBranch    = meaning{ReasonNoBranch, fault.NotFound, "list the branches to see which there are"}
	conflicting = meaning{ReasonConflict, fault.Conflict, "edit the files that conflict, add them and commit; a reset with mode merge undoes it"}
	dirty       = meaning{ReasonDirty, fault.State, "commit the changes, restore the files, or force it where that is offered"}
	noRemote    = meaning{ReasonNoRemote, fault.NotFound, "list the remotes to see which there are, or add it"}
)

// findings is searched from the first to the last: what says more stands before what says less.
var findings = []finding{
	{regexp.MustCompile(`executable file not found`), meaning{ReasonMissing, fault.State, "install it, or create the sandbox from an image that has it"}},
	{regexp.MustCompile(`detected dubious ownership`), meaning{ReasonOwner, fault.State, "run it as the user whose repository it is: user root"}},
	{regexp.MustCompile(`(?i)\.lock': File exists|another git process seems to be running`), meaning{ReasonInUse, fault.State, "wait for the other command, or remove the lock if there is none"}},
	{regexp.MustCompile(`(?i)already exists and is not an empty directory`), meaning{"", fault.Exists, seeRemedy}},
	{regexp.MustCompile(`(?i)a branch named '.*' already exists`), meaning{ReasonBranchExists, fault.Exists, "check it out, or take another name"}},
	{regexp.MustCompile(`(?i)remote .* already exists`), meaning{"", fault.Exists, "overwrite it, or take another name"}},
	{regexp.MustCompile(`(?i)cannot delete branch|cannot force update the branch .* (checked out|used by)|is already (checked out|used by worktree)`), meaning{ReasonInUse, fault.State, "check out another branch first"}},
	{regexp.MustCompile(`(?i)is not fully merged`), meaning{ReasonNotMerged, fault.State, "force deletes it with the commits that no other branch has"}},
	{regexp.MustCompile(`(?i)please tell me who you are|empty ident name|unable to auto-detect email|no (email|name) was given|please supply the (name|email)`), meaning{ReasonNoIdentity, fault.State, "give author and email, or set user.name and user.email in the configuration"}},
	{regexp.MustCompile(`(?i)have diverged|not possible to fast-forward|refusing to merge unrelated histories|diverging branches`), meaning{ReasonDiverged, fault.Conflict, "pull with mode merge or rebase"}},
	{regexp.MustCompile(`(?im)^conflict \(|^automatic merge failed|^could not apply|unmerged (files|paths)|is unmerged|you have not concluded your (merge|cherry-pick)|resolve your current index first|needs merge|there (are|is) .*unmerged`), conflicting},
	{regexp.MustCompile(`(?i)would be (overwritten|removed|lost)|your local changes|you have unstaged changes|your index contains uncommitted|not uptodate|please commit (your changes )?or stash|index is not up to date`), dirty},
	{regexp.MustCompile(`(?im)^(nothing to commit|nothing added to commit|no changes added to commit|no changes$)|nothing to commit, working tree clean`), meaning{ReasonNothing, fault.State, "add what has changed first; allow_empty makes a commit of nothing"}},
	{regexp.MustCompile(`(?i)no such remote`), noRemote},
	{regexp.MustCompile(`(?i)remote branch .* not found|couldn't find remote ref|src refspec .* does not match|branch '.*' not found|no such branch|remote ref does not exist`), noBranch},
	{regexp.MustCompile(`(?i)unknown revision|bad revision|not a valid object name|ambiguous argument|could not parse (object|commit)|could not resolve '?.*'? to|invalid reference|reference is not a tree|not a tree object|failed to resolve '.*' as a valid|not our ref|does not point to a commit|unable to read tree|could not resolve HEAD`), meaning{ReasonNoCommit, fault.NotFound, "list the branches and the log to see which there are"}},
	{regexp.MustCompile(`(?i)pathspec '.*' did not match`), meaning{ReasonNoPath, fault.NotFound, "see the status for the files that git knows; paths are below the repository's directory"}},
	{regexp.MustCompile(`(?i)authentication failed|could not read (username|password)|permission denied \(|permission denied, please try again|returned error: 401|invalid (username|credentials)`), meaning{ReasonCredentials, fault.State, "give username and password, or a token, that the server takes for this repository"}},
	{regexp.MustCompile(`(?i)returned error: 403|access denied|pre-receive hook declined|protected branch|remote rejected|deny updating|hook declined`), refused},
	{regexp.MustCompile(`(?i)cannot change to '|repository '.*' (not found|does not exist)|does not appear to be a git repository|not a git repository|returned error: 404|repository not found|repository not exported|must be run in a work tree|cannot use bare repository`), meaning{ReasonNoRepository, fault.NotFound, "see whether the address, or the path, is a repository's"}},
	{regexp.MustCompile(`(?i)could not resolve host|name resolution|name or service not known|no such host|unreachable|(failed|unable|could not) (to )?connect|connection (refused|timed out|reset|was reset)|timed out|host key verification failed|certificate|ssl_|gnutls|returned error: 5\d\d|early eof|the remote end hung up|empty reply|unable to access`), meaning{ReasonUnreachable, fault.State, seeRemedy}},
	{regexp.MustCompile(`(?im)failed to push some refs|\[rejected\]|non-fast-forward`), rejected},
}

// understand returns what git says of a failure, the zero meaning where it is not known. What a server
// says itself counts for nothing: git sets remote: before it.
func understand(said string) meaning {
	var own []string
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "remote:") && !strings.HasPrefix(line, "hint:") {
			own = append(own, strings.TrimPrefix(strings.TrimPrefix(line, "fatal: "), "error: "))
		}
	}
	text := strings.Join(own, "")
	for _, f := range findings {
		if f.MatchString(text) {
			return f.meaning
		}
	}
	return meaning{}
}
