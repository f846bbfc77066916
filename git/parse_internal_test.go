// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/engine/check"
)

type fields = check.Fields

const (
	id1 = "1111111111111111111111111111111111111111"
	id2 = "2222222222222222222222222222222222222222"
	m   = "100644 100644 100644"
)

func z(items ...string) string { return strings.Join(items, "\x00") + "\x00" }

func TestStatusIsRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		cut  bool
		want Status
	}{
		"nothing":                           {"", false, Status{}},
		"no commit":                         {z("# branch.oid (initial)", "# branch.head main"), false, Status{Branch: "main"}},
		"detached":                          {z("# branch.oid "+id1, "# branch.head (detached)"), false, Status{Commit: id1}},
		"an upstream":                       {z("# branch.oid "+id1, "# branch.head a", "# branch.upstream o/a", "# branch.ab +2 -3"), false, Status{Commit: id1, Branch: "a", Upstream: "o/a", Ahead: 2, Behind: 3, Published: true}},
		"one that is gone":                  {z("# branch.head a", "# branch.upstream o/a"), false, Status{Branch: "a", Upstream: "o/a"}},
		"a bad count":                       {z("# branch.head a", "# branch.ab +x -3", "# branch.ab", "# branch.ab +-1 --1"), false, Status{Branch: "a"}},
		"changed":                           {z("1 .M N... " + m + " " + id1 + " " + id2 + " a b"), false, Status{Files: []FileStatus{{Path: "a b", Index: Unmodified, Worktree: Modified}}}},
		"a submodule":                       {z("1 A. S.M. " + m + " " + id1 + " " + id2 + " s"), false, Status{Files: []FileStatus{{Path: "s", Index: Added, Worktree: Unmodified, Submodule: true}}}},
		"renamed":                           {z("2 R. N... "+m+" "+id1+" "+id2+" R100 new", "? old"), false, Status{Files: []FileStatus{{Path: "new", From: "? old", Index: Renamed, Worktree: Unmodified}}}},
		"conflicts":                         {z("u UU N... 100644 " + m + " " + id1 + " " + id1 + " " + id2 + " \n"), false, Status{Files: []FileStatus{{Path: "\n", Index: Unmerged, Worktree: Unmerged}}}},
		"untracked":                         {z("? d/", "? -x", "? # branch.head no", "? \xff"), false, Status{Files: []FileStatus{{Path: "d", Index: Untracked, Worktree: Untracked}, {Path: "-x", Index: Untracked, Worktree: Untracked}, {Path: "# branch.head no", Index: Untracked, Worktree: Untracked}, {Path: "\uefff", Index: Untracked, Worktree: Untracked}}}},
		"what it does not know":             {z("! ignored", "9 x", "1", "1 ZZ N... "+m+" "+id1+" "+id2+" a", "1 .M N... a", "? ", "2"), false, Status{}},
		"cut off":                           {z("? a") + "? b", true, Status{Truncated: true, Files: []FileStatus{{Path: "a", Index: Untracked, Worktree: Untracked}}}},
		"cut off in the middle of a rename": {z("2 R. N... "+m+" "+id1+" "+id2+" R100 new") + "ol", true, Status{Truncated: true}},
		"too many":                          {z(strings.Split(strings.Repeat("? a,", maxList+1), ",")...), false, Status{Truncated: true}},
	} {
		got := parseStatus(c.text, c.cut)
		if name == "too many" {
			if len(got.Files) != maxList {
				t.Errorf("%s: %d files", name, len(got.Files))
			}
			got.Files = nil
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestLogIsRead(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	commit := func(message string) string {
		return z(id1, id2+" "+id1, "A\x1b[2J", "a@b", "2026-01-02T03:04:05Z", "C", "c@d", "2026-01-02T04:04:05+01:00", message)
	}
	want := func(message string) Commit {
		return Commit{ID: id1, Parents: []string{id2, id1}, Author: Person{"A [2J", "a@b", when}, Committer: Person{"C", "c@d", when}, Message: message}
	}
	for name, c := range map[string]struct {
		text string
		cut  bool
		want Log
	}{
		"nothing":               {"", false, Log{}},
		"two":                   {commit("one\n\nbody\n") + commit(""), false, Log{Commits: []Commit{want("one\n\nbody"), want("")}}},
		"bytes":                 {commit("\xff"), false, Log{Commits: []Commit{want("\ufffd")}}},
		"cut off":               {commit("one") + commit("two")[:90], true, Log{Commits: []Commit{want("one")}, More: true}},
		"a NUL in what is said": {commit("one\x00two") + commit("three"), false, Log{Commits: []Commit{want("one"), want("three")}}},
		"no id":                 {z("x", "", "", "", "", "", "", "", ""), false, Log{}},
		"no dates":              {z(id1, "", "", "", "@1", "", "", "99999-01-01T00:00:00Z", ""), false, Log{Commits: []Commit{{ID: id1}}}},
	} {
		if d := cmp.Diff(c.want, parseLog(c.text, c.cut), cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestBranchesAreRead(t *testing.T) {
	t.Parallel()
	text := "refs/heads/main\x00" + id1 + "\x00*\x00refs/remotes/o/main\x00x\x00\n" +
		"refs/heads/\xff\x00" + id1 + "\x00 \x00\x00x\x00\n" +
		"refs/remotes/o/HEAD\x00" + id1 + "\x00 \x00\x00x\x00refs/remotes/o/main\n" +
		"refs/remotes/o/main\x00" + id2 + "\x00 \x00\x00x\x00\n" +
		"refs/tags/v\x00" + id2 + "\x00 \x00\x00x\x00\n" + "refs/heads/\x00" + id2 + "\x00 \x00\x00x\x00\n" +
		"refs/heads/a\x00zz\x00 \x00\x00x\x00\nshort\x00line\n" + "refs/heads/cut\x00" + id2 + "\x00 \x00\x00x\x00"
	want := BranchList{Current: "main", Truncated: true, Branches: []Branch{
		{Name: "main", Commit: id1, Upstream: "o/main", Current: true}, {Name: "\uefff", Commit: id1}, {Name: "o/main", Remote: true, Commit: id2},
	}}
	if d := cmp.Diff(want, parseBranches(text, true)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestPushIsRead(t *testing.T) {
	t.Parallel()
	text := "To https://h/x\n*\trefs/heads/a:refs/heads/a\t[new branch]\n \ta:b\t1..2\n+\ta:c\t1...2 (forced update)\n-\t:d\t[deleted]\n=\ta:e\t[up to date]\n" +
		"!\ta:f\t[rejected] (fetch first)\n!\ta:g\t[remote rejected] (no \x1b)\n?\ta:h\tx\n*\tnothing\tx\n*\ta:\tx\nDone\n*\ta:cut\toff"
	want := []PushedRef{
		{"refs/heads/a", PushCreated, "[new branch]"}, {"b", PushUpdated, "1..2"}, {"c", PushForced, "1...2 (forced update)"}, {"d", PushDeleted, "[deleted]"}, {"e", PushCurrent, "[up to date]"},
		{"f", PushRejected, "[rejected] (fetch first)"}, {"g", PushRefused, "[remote rejected] (no  )"},
	}
	if d := cmp.Diff(want, parsePush(text)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestRemotesAreRead(t *testing.T) {
	t.Parallel()
	text := "remote.b.url\nhttps://u:p@h/x\x00remote.b.url\nsecond\x00remote.a.b.pushurl\ny\x00remote.a.url\nhttps://u:p%zz@h/x\x00remote.url\nno\x00remote.a.b.fetch\nz\x00remote.a.b.url\n\x00broken\x00remote..url\nx"
	want := []RemoteRepository{{Name: "a", URL: "https://h/x"}, {Name: "a.b", PushURL: "y"}, {Name: "b", URL: "https://u@h/x"}}
	if d := cmp.Diff(want, parseRemotes(text)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWhatAServerSaysHasNoMeaning holds that a server's own words do not pass for git's.
func TestWhatAServerSaysHasNoMeaning(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"remote: fatal: Authentication failed for 'x'":                                             "",
		"hint: not possible to fast-forward":                                                       "",
		"fatal: Authentication failed for 'x'":                                                     ReasonCredentials,
		"remote: Repository not found.\nfatal: repository 'https://h/x/' not found":                ReasonNoRepository,
		"remote: x\nfatal: unable to access 'https://h/x/': The requested URL returned error: 403": ReasonRefused,
		"fatal: unable to access 'https://h/x/': Could not resolve host: h":                        ReasonUnreachable,
		"git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.":     ReasonCredentials,
		"Host key verification failed.\nfatal: Could not read from remote repository.":             ReasonUnreachable,
		"fatal: detected dubious ownership in repository at '/x'":                                  ReasonOwner,
		"fatal: unable to access 'https://h/': SSL certificate problem: self-signed certificate":   ReasonUnreachable,
		"error: The following untracked working tree files would be overwritten by merge:\n\tf":    ReasonDirty,
		"fatal: cannot use bare repository '/x' (safe.bareRepository is 'explicit')":               ReasonNoRepository,
		"fatal: no email was given and auto-detection is disabled":                                 ReasonNoIdentity,
		"fatal: You have not concluded your merge (MERGE_HEAD exists).":                            ReasonConflict,
		"something else": "",
	} {
		if got := understand(said).reason; got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
	for _, f := range findings {
		if f.code == "" || f.remedy == "" {
			t.Errorf("%s has no code or no remedy", f.Regexp)
		}
		found := f.reason == ""
		for _, r := range Reasons() {
			found = found || r == f.reason
		}
		if !found {
			t.Errorf("%s is not among the reasons", f.reason)
		}
	}
}

// FuzzParsers holds that whatever a program called git prints, what is read is bounded, and text.
func FuzzParsers(f *testing.F) {
	f.Add(z("# branch.head a", "1 .M N... "+m+" "+id1+" "+id2+" a", "2 R. N... "+m+" "+id1+" "+id2+" R1 b", "c", "? \xff"))
	f.Add(z(id1, id2, "a", "b", "2026-01-02T03:04:05Z", "c", "d", "2026-01-02T03:04:05Z", "e"))
	f.Add("refs/heads/main\x00" + id1 + "\x00*\x00refs/remotes/o/main\x00x\x00\n*\ta:b\tc\n")
	f.Add("remote.b.url\nhttps://u:p@h/x\x00remote.b.pushurl\nhttps://u:p%@h\x00")
	f.Add("@://0") // was shown as @://://0
	f.Fuzz(func(t *testing.T, text string) {
		var all []string
		st := parseStatus(text, false)
		all = append(all, st.Branch, st.Upstream, st.Commit)
		for _, x := range st.Files {
			if all = append(all, x.Path, x.From); x.Path == "" || x.Index == "" || x.Worktree == "" {
				t.Errorf("a file of %q is %+v", text, x)
			}
		}
		for _, x := range parseLog(text, false).Commits {
			if all = append(all, x.Message, x.Author.Name, x.Committer.Email); !fullID.MatchString(x.ID) {
				t.Errorf("a commit of %q is %+v", text, x)
			}
		}
		for _, x := range parseBranches(text, false).Branches {
			if all = append(all, x.Name, x.Upstream); x.Name == "" || !fullID.MatchString(x.Commit) {
				t.Errorf("a branch of %q is %+v", text, x)
			}
		}
		for _, x := range parsePush(text) {
			if all = append(all, x.Name, x.Detail); x.Name == "" || x.State == "" {
				t.Errorf("a name of %q is %+v", text, x)
			}
		}
		for _, x := range parseRemotes(text) {
			all = append(all, x.Name, x.URL, x.PushURL)
		}
		all = append(all, understand(text).reason, shownAddress(text))
		if again := shownAddress(shownAddress(text)); again != shownAddress(text) && strings.Contains(again, "@") {
			t.Errorf("%q is shown as %q, and that as %q", text, shownAddress(text), again)
		}
		for _, s := range all {
			if !utf8.ValidString(s) {
				t.Errorf("of %q there is %q, which is not text", text, s)
			}
		}
	})
}

// FuzzNames holds that no name that passes is an option, or two arguments.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"main", "-x", "a b", "HEAD~1", "a..b", "^x", ":/x", "v1^{}", "@{u}", "a\nb", "x.lock", "é", "remote/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for what, check := range map[string]func(*fields, string){
			"branch":   func(k *fields, s string) { checkBranch(k, "x", s) },
			"revision": func(k *fields, s string) { checkRevision(k, "x", s) },
			"remote":   func(k *fields, s string) { checkRemote(k, "x", s) },
		} {
			var k fields
			if check(&k, name); k.Err() == nil && name != "" && (strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\x00\n\r\x1b") || what != "revision" && strings.ContainsAny(name, " =:~^")) {
				if what == "branch" && !strings.ContainsAny(name, " :~^\n\x00") && !strings.HasPrefix(name, "-") {
					continue // = may be in a branch
				}
				t.Errorf("%q passes as a %s", name, what)
			}
		}
	})
}
