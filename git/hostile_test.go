// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/git"
)

// TestNoProcessShowsCredentials looks at all processes of the machine whenever the server is asked by
// somebody with credentials, and at all that is left after.
func TestNoProcessShowsCredentials(t *testing.T) {
	t.Parallel()
	h := open(t)
	var looked, git1 atomic.Int64
	look := func(*http.Request) {
		found, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			t.Error(err)
		}
		for _, dir := range found {
			for _, name := range []string{"cmdline", "environ"} {
				text, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					continue // it has ended
				}
				if name == "cmdline" && bytes.Contains(text, []byte("remote-http")) {
					git1.Add(1)
				}
				if bytes.Contains(text, []byte(password)) || bytes.Contains(text, []byte(encoded("u"))) {
					t.Errorf("%s/%s has the password: %q", dir, name, text)
				}
			}
		}
		looked.Add(1)
	}
	h.asked.Store(&look)
	h.clone(git.CloneRequest{URL: h.url + "/app.git", Remote: login()})
	h.run("cd app && " + identity + " && git commit -q --allow-empty -m x")
	at := git.At{Path: "app"}
	must[git.Pushed](t)(h.git.Push(t.Context(), alice, h.box, git.PushRequest{At: at, Remote: login(), SetUpstream: true, Tags: true}))
	must[git.Pulled](t)(h.git.Pull(t.Context(), alice, h.box, git.PullRequest{At: at, Remote: login()}))
	if looked.Load() < 6 || git1.Load() == 0 {
		t.Fatalf("looked %d times, and %d times at git's transport", looked.Load(), git1.Load())
	}
	for where, text := range map[string]string{"the record": h.recorded(), "the files": h.run("grep -rlF '" + password[:6] + "' . \"$HOME\" || true"), "the audit log": h.audited()} {
		for _, value := range []string{password, encoded("u")} {
			if strings.Contains(text, value) {
				t.Errorf("%s has %q:\n%s", where, value, text)
			}
		}
		if where == "the files" && text != "" {
			t.Errorf("the password is in %s", text)
		}
		if where != "the files" && !strings.Contains(text, "push") {
			t.Errorf("%s says nothing of a push:\n%s", where, text)
		}
	}
}

// hostile makes a repository whose configuration and hooks name programs, each of which says that it was started,
// and takes what it can of credentials.
func (h *house) hostile(dir, proxy string) {
	h.t.Helper()
	h.run(`cd ` + dir + ` && here=$PWD && cat >"$here/../steal" <<END
#!/bin/sh
echo "\$0 \$*" >>"$here/../started"
{ env; cat /proc/\$PPID/environ; timeout 1 cat <&3; timeout 1 cat /proc/\$PPID/fd/3; } >>"$here/../stolen" 2>/dev/null
exit 0
END
chmod +x ../steal
for x in pre-commit prepare-commit-msg commit-msg post-commit post-checkout post-merge pre-push pre-rebase pre-merge-commit post-rewrite reference-transaction post-index-change push-to-checkout; do
	ln -sf ../../../steal .git/hooks/$x
done
cp ../steal ../fsmonitor && cp ../steal ../helper && cp ../steal ../other
s="$here/../other"
git config core.fsmonitor "$here/../fsmonitor"
git config core.pager "$s pager" && git config pager.status true && git config pager.log true && git config pager.branch true
git config core.sshCommand "$s ssh" && git config core.gitProxy "$s gitproxy" && git config core.askPass "$s askpass"
git config core.editor "$s editor" && git config sequence.editor "$s sequence"
git config diff.external "$s external" && git config log.showSignature true && git config gpg.program "$s"
git config core.alternateRefsCommand "$s alternates" && git config credential.helper "!$here/../helper" && git config 'credential.` + h.url + `.helper' "!$here/../helper"
git config 'credential.` + h.url + `/app.git.helper' "!$here/../helper" && git config 'credential.*.helper' "!$here/../helper"
git config push.gpgSign if-asked
git config alias.status "!$s alias" && git config alias.push "!$s alias"
git config http.proxy ` + proxy + ` && git config 'http.` + h.url + `/app.git.proxy' ` + proxy + ` && git config remote.origin.proxy ` + proxy + `
git config http.sslVerify false && git config http.extraHeader "X-Hostile: 1"
git config remote.origin.uploadpack "$s" && git config remote.origin.receivepack "$s"
printf '[includeIf "gitdir:**"]\n\tpath = ../../more\n' >>.git/config
printf '[core]\n\thooksPath = .git/hooks\n\tpager = %s include\n' "$s" >../more
mkdir -p ../sub && git init -q ../sub/inner`)
}

func TestHostileRepositories(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	var told atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told.Store(true)
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	h.clone(git.CloneRequest{URL: h.url + "/app.git", Remote: login()})
	h.run("cd app && " + identity + " && git commit -q --allow-empty -m x && git branch b && git branch c")
	h.hostile("app", proxy.URL)
	at := git.At{Path: "app"}
	started := func() []string {
		return strings.FieldsFunc(h.run("cat started 2>/dev/null; rm -f started"), func(r rune) bool { return r == '\n' })
	}
	started()

	// What only reads, and what asks a server with credentials, starts none of them.
	must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at}))
	must[git.Log](t)(h.git.Log(ctx, alice, h.box, git.LogRequest{At: at}))
	must[git.BranchList](t)(h.git.Branches(ctx, alice, h.box, git.BranchesRequest{At: at, Remote: true}))
	must[[]git.RemoteRepository](t)(h.git.Remotes(ctx, alice, h.box, at))
	if got := must[string](t)(h.git.Config(ctx, alice, h.box, git.ConfigRequest{At: at, Key: "core.pager"})); !strings.HasSuffix(got, "other include") {
		t.Errorf("the configuration's pager is %q", got)
	}
	h.run("cd app && echo y >y")
	if err := h.git.Add(ctx, alice, h.box, git.AddRequest{At: at, All: true}); err != nil {
		t.Error(err)
	}
	if err := h.git.Restore(ctx, alice, h.box, git.RestoreRequest{At: at, Files: []string{"f"}}); err != nil {
		t.Error(err)
	}
	must[git.CheckedOut](t)(h.git.Reset(ctx, alice, h.box, git.ResetRequest{At: at}))
	must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, Remote: login()}))
	must[git.Branch](t)(h.git.CreateBranch(ctx, alice, h.box, git.CreateBranchRequest{At: at, Name: "d"}))
	if err := h.git.DeleteBranch(ctx, alice, h.box, git.DeleteBranchRequest{At: at, Name: "d"}); err != nil {
		t.Error(err)
	}
	must[git.Pulled](t)(h.git.Pull(ctx, alice, h.box, git.PullRequest{At: at, Remote: login(), SkipHooks: true}))
	must[git.CheckedOut](t)(h.git.Checkout(ctx, alice, h.box, git.CheckoutRequest{At: at, Target: "b", SkipHooks: true}))
	must[git.Committed](t)(h.git.Commit(ctx, alice, h.box, git.CommitRequest{At: at, Message: "x", AllowEmpty: true, SkipHooks: true}))
	if got := started(); len(got) > 0 {
		t.Errorf("these were started: %q", got)
	}
	if told.Load() {
		t.Error("the configuration's proxy was asked")
	}

	// A hook runs as for a person who types the command, and finds no credentials.
	must[git.Committed](t)(h.git.Commit(ctx, alice, h.box, git.CommitRequest{At: at, Message: "x", AllowEmpty: true}))
	must[git.CheckedOut](t)(h.git.Checkout(ctx, alice, h.box, git.CheckoutRequest{At: at, Target: "main"}))
	h.run("git init -q --bare inside.git; cd app; git remote add inside ../inside.git")
	must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, Name: "inside"}))
	ran := started()
	for _, hook := range []string{"pre-commit", "commit-msg", "post-checkout", "pre-push"} {
		if !slices.ContainsFunc(ran, func(s string) bool { return strings.Contains(s, hook) }) {
			t.Errorf("the hook %s did not run: %q", hook, ran)
		}
	}
	if slices.ContainsFunc(ran, func(s string) bool { return strings.Contains(s, "fsmonitor") || strings.Contains(s, "other") }) {
		t.Errorf("these were started: %q", ran)
	}
	h.run("cd app && echo one >>f && git commit -qam z; git reset -q --hard HEAD~1")
	started()
	must[git.Pulled](t)(h.git.Pull(ctx, alice, h.box, git.PullRequest{At: at, Remote: login()}))
	if got := h.run("cat stolen 2>/dev/null | tr '\\0' '\\n' | grep -c '" + password + "' || true"); got != "0" {
		t.Error("a hook found the password")
	}

	// The configuration sends the address elsewhere: nothing there is told the password.
	h.run(`cd app && git config 'url.` + h.url + `/elsewhere.git.insteadOf' ` + h.url + `/app.git`)
	if _, err := h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, Remote: login(), URL: h.url + "/app.git"}); fault.Of(err) != fault.State || h.other.Load() != 0 {
		t.Errorf("an address that the configuration changed: %v, the other server was asked %d times", err, h.other.Load())
	}
	if _, err := h.git.Pull(ctx, alice, h.box, git.PullRequest{At: at, Remote: login()}); err == nil || h.leaked.Load() {
		t.Errorf("a server that redirects: %v, told: %v", err, h.leaked.Load())
	}
	// A user within the address has keys of its own, which go before others.
	named := strings.Replace(h.url, "http://", "http://u@", 1) + "/app.git"
	h.run(`cd app && git config --unset-all 'url.` + h.url + `/elsewhere.git.insteadOf'; git remote set-url origin ` + named + ` && git config 'http.` + named + `.proxy' ` + proxy.URL)
	must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, Remote: login(), Branch: "main", URL: h.url + "/app.git"}))
	if told.Load() {
		t.Error("the proxy of the address with a user was asked")
	}
	// A login within the configuration's own address is shown nowhere.
	h.run(`cd app && git remote set-url origin ` + strings.Replace(h.url, "http://", "http://u:"+password+"@", 1) + `/app.git`)
	p := must[git.Pushed](t)(h.git.Push(ctx, alice, h.box, git.PushRequest{At: at, SkipHooks: true, Branch: "main"}))
	if strings.Contains(p.URL, password) {
		t.Errorf("the address of a push is %q", p.URL)
	}
}

// TestARepositoryWithinARepository: what was cloned may have a directory that git takes for a bare repository, with
// a configuration that came with it.
func TestARepositoryWithinARepository(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.run(`git init -q --bare work/lib && cd work/lib && git config core.bare false && git config core.worktree .. && git config core.fsmonitor 'touch ../../owned; false' && git config filter.x.clean 'touch ../owned; cat' && echo '* filter=x' >info/attributes && echo a >../a && git config core.bare true`)
	for _, path := range []string{"work/lib", "work/lib/objects"} {
		if _, err := h.git.Status(t.Context(), alice, h.box, git.StatusRequest{At: git.At{Path: path}}); fault.ReasonOf(err) != git.ReasonNoRepository {
			t.Errorf("%s: %v", path, err)
		}
		if err := h.git.Add(t.Context(), alice, h.box, git.AddRequest{At: git.At{Path: path}, All: true}); fault.ReasonOf(err) != git.ReasonNoRepository {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := h.run("ls"); got != "work" {
		t.Errorf("there is now %s", got)
	}
}

// TestHostileSubmodulesAndNames: what a repository calls its submodules, files and branches, and what it says of where those are
// from, is data. Nothing of it is fetched, started, or taken for an argument.
func TestHostileSubmodulesAndNames(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := t.Context()
	names := []string{"--exec=touch owned", "-rf", "$(touch owned)", "`touch owned`", ";touch owned", "|touch owned", ":(top)x", ":!f", "*", "\x1b[31mred", "new\nline", "\"quoted\"", " blank ", "HEAD", "ü"}
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	h.run(`mkdir evil && cd evil && git init -q -b main && ` + identity + ` && echo f >f && git add f && git commit -qm first`)
	for _, n := range names {
		h.run(`cd evil && echo x >./` + quoted(n))
	}
	h.run(`cd evil && printf '[submodule "x"]\n\tpath = sub\n\turl = ext::touch owned\n\tupdate = !touch owned\n[submodule "../../../hooks"]\n\tpath = -u\n\turl = --upload-pack=touch owned\n\tfetchRecurseSubmodules = true\n[submodule "y"]\n\tpath = link/in\n\turl = file:///etc\n' >.gitmodules
git add . && at=$(git rev-parse HEAD) && git update-index --add --cacheinfo 160000,$at,sub --cacheinfo 160000,$at,link/in && git commit -qm hostile
git config uploadpack.allowAnySHA1InWant true; for b in -x --upload-pack=x 'a;touch' '$(touch)'; do git update-ref "refs/heads/$b" HEAD; done`)
	owned := func(after string) {
		t.Helper()
		if got := h.run("find . /tmp -name owned -o -name 'owned;' 2>/dev/null | head -3"); got != "" {
			t.Fatalf("after %s there is %s", after, got)
		}
	}
	must[git.Cloned](t)(h.git.Clone(ctx, alice, h.box, git.CloneRequest{URL: "./evil", Path: "app"}))
	owned("a clone")
	at := git.At{Path: "app"}
	if got := h.run("ls -A app/sub app/link/in; git -C app config --get-regexp '^submodule' || true"); strings.Contains(got, "ext::") {
		t.Errorf("a submodule is set up: %s", got)
	}
	for _, n := range names { // each is the file, and no other
		h.run(`cd app && echo changed >./` + quoted(n))
	}
	changed := func() map[string]bool {
		t.Helper()
		out := make(map[string]bool)
		for _, f := range must[git.Status](t)(h.git.Status(ctx, alice, h.box, git.StatusRequest{At: at})).Files {
			out[f.Path] = true
		}
		return out
	}
	before := changed()
	for _, n := range names {
		if shown := strings.ToValidUTF8(n, "\ufffd"); !before[n] && !before[shown] {
			t.Errorf("the status has no %q: %v", n, before)
		}
	}
	for _, n := range names {
		was := len(changed())
		err := h.git.Restore(ctx, alice, h.box, git.RestoreRequest{At: at, Files: []string{n}})
		switch is := len(changed()); {
		case err == nil && is == was-1:
		case fault.Is(err, fault.Invalid) && is == was: // it cannot be named in a request
		default:
			t.Errorf("%q: %v, %d files had changed, %d have", n, err, was, is)
		}
	}
	owned("restores")
	if err := h.git.Add(ctx, alice, h.box, git.AddRequest{At: at, All: true}); err != nil {
		t.Error(err)
	}
	h.run("cd app && " + identity)
	must[git.Committed](t)(h.git.Commit(ctx, alice, h.box, git.CommitRequest{At: at, Message: "--amend", AllowEmpty: true}))
	must[git.Log](t)(h.git.Log(ctx, alice, h.box, git.LogRequest{At: at}))
	must[git.BranchList](t)(h.git.Branches(ctx, alice, h.box, git.BranchesRequest{At: at, Remote: true}))
	must[git.Pulled](t)(h.git.Pull(ctx, alice, h.box, git.PullRequest{At: at}))
	for _, b := range []string{"-x", "--upload-pack=x", "a;touch", "$(touch)", "../../x", "a..b", "a b", "@{", "x.lock", "\x1b[31m"} {
		_, err := h.git.Checkout(ctx, alice, h.box, git.CheckoutRequest{At: at, Target: b})
		if _, cerr := h.git.CreateBranch(ctx, alice, h.box, git.CreateBranchRequest{At: at, Name: b}); cerr == nil || fault.As(cerr).Message == "" { // git takes none of them, or has it
			t.Errorf("a branch %q: %v", b, cerr)
		}
		if e := fault.As(err); err != nil && (e.Code == fault.Internal || e.Message == "") {
			t.Errorf("to check %q out: %v", b, err)
		}
	}
	owned("branches")
	h.run("cd app && git submodule status >/dev/null 2>&1; true")

	// A tree that has files of git's own, or a way to them, is not checked out.
	h.run(`cd evil && hook=$(printf '#!/bin/sh\ntouch owned\n' | git hash-object -w --stdin) && hooks=$(printf '100755 blob %s\tpost-checkout\n' $hook | git mktree) && dir=$(printf '040000 tree %s\thooks\n' $hooks | git mktree)
for name in .git .GIT 'git~1'; do tree=$(printf '040000 tree %s\t%s\n' $dir "$name" | git mktree) && git update-ref "refs/heads/tree-$(echo "$name" | tr -d '.~')" $(git commit-tree -m x $tree); done`)
	for _, b := range []string{"tree-git", "tree-GIT", "tree-git1"} {
		_, err := h.git.Clone(ctx, alice, h.box, git.CloneRequest{URL: "./evil", Path: b, Branch: b})
		if err == nil && b == "tree-git" {
			t.Errorf("%s was checked out", b)
		}
		if f, ok := errors.AsType[*git.Failure](err); err != nil && (!ok || f.Said == "") {
			t.Errorf("%s: %v, want what git says", b, err)
		}
		if got := h.run("test -e " + b + "/.git/hooks/post-checkout && echo there || true"); got != "" {
			t.Errorf("%s brought a hook", b)
		}
	}
	owned("trees of git's own files")
}
