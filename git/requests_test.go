// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/fault"
	"sandpit.dev/git"
	"sandpit.dev/sandbox"
)

// verbs returns every verb with a request that is right.
func (h *house) verbs() map[string]func(context.Context, access.Caller) error {
	g, box := h.git, h.box
	return map[string]func(context.Context, access.Caller) error{
		"clone": func(ctx context.Context, c access.Caller) error {
			_, err := g.Clone(ctx, c, box, git.CloneRequest{URL: "./x", Path: "y"})
			return err
		},
		"status": func(ctx context.Context, c access.Caller) error {
			_, err := g.Status(ctx, c, box, git.StatusRequest{})
			return err
		},
		"add": func(ctx context.Context, c access.Caller) error {
			return g.Add(ctx, c, box, git.AddRequest{All: true})
		},
		"commit": func(ctx context.Context, c access.Caller) error {
			_, err := g.Commit(ctx, c, box, git.CommitRequest{Message: "x"})
			return err
		},
		"push": func(ctx context.Context, c access.Caller) error {
			_, err := g.Push(ctx, c, box, git.PushRequest{})
			return err
		},
		"pull": func(ctx context.Context, c access.Caller) error {
			_, err := g.Pull(ctx, c, box, git.PullRequest{})
			return err
		},
		"branches": func(ctx context.Context, c access.Caller) error {
			_, err := g.Branches(ctx, c, box, git.BranchesRequest{})
			return err
		},
		"create branch": func(ctx context.Context, c access.Caller) error {
			_, err := g.CreateBranch(ctx, c, box, git.CreateBranchRequest{Name: "x"})
			return err
		},
		"delete branch": func(ctx context.Context, c access.Caller) error {
			return g.DeleteBranch(ctx, c, box, git.DeleteBranchRequest{Name: "x"})
		},
		"checkout": func(ctx context.Context, c access.Caller) error {
			_, err := g.Checkout(ctx, c, box, git.CheckoutRequest{Target: "x"})
			return err
		},
		"log": func(ctx context.Context, c access.Caller) error {
			_, err := g.Log(ctx, c, box, git.LogRequest{})
			return err
		},
		"init": func(ctx context.Context, c access.Caller) error {
			_, err := g.Init(ctx, c, box, git.InitRequest{At: git.At{Path: "z"}})
			return err
		},
		"reset": func(ctx context.Context, c access.Caller) error {
			_, err := g.Reset(ctx, c, box, git.ResetRequest{})
			return err
		},
		"restore": func(ctx context.Context, c access.Caller) error {
			return g.Restore(ctx, c, box, git.RestoreRequest{Files: []string{"x"}})
		},
		"remotes": func(ctx context.Context, c access.Caller) error {
			_, err := g.Remotes(ctx, c, box, git.At{})
			return err
		},
		"add remote": func(ctx context.Context, c access.Caller) error {
			_, err := g.AddRemote(ctx, c, box, git.AddRemoteRequest{Name: "x", URL: "../x"})
			return err
		},
		"remove remote": func(ctx context.Context, c access.Caller) error {
			return g.RemoveRemote(ctx, c, box, git.RemoveRemoteRequest{Name: "x"})
		},
		"config": func(ctx context.Context, c access.Caller) error {
			_, err := g.Config(ctx, c, box, git.ConfigRequest{Key: "a.b"})
			return err
		},
		"set config": func(ctx context.Context, c access.Caller) error {
			return g.SetConfig(ctx, c, box, git.SetConfigRequest{ConfigRequest: git.ConfigRequest{Key: "a.b"}, Value: "x"})
		},
		"unset config": func(ctx context.Context, c access.Caller) error {
			return g.UnsetConfig(ctx, c, box, git.ConfigRequest{Key: "a.b"})
		},
	}
}

func TestWhoMayUseGit(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, verb := range h.verbs() {
		if err := verb(t.Context(), carol); !fault.Is(err, fault.Denied) {
			t.Errorf("%s, of who may only read: %v", name, err)
		}
		if err := verb(t.Context(), bob); !fault.Is(err, fault.NotFound) || fault.ReasonOf(err) != sandbox.ReasonNoSandbox {
			t.Errorf("%s, of another project: %v", name, err)
		}
	}
	if got := h.run("ls -A"); got != "" {
		t.Errorf("there is now %s", got)
	}
}

func TestWrongFields(t *testing.T) {
	t.Parallel()
	h := open(t)
	g, ctx, box := h.git, t.Context(), h.box
	long := strings.Repeat("x", 5000)
	branch := func(name string) error {
		_, err := g.CreateBranch(ctx, alice, box, git.CreateBranchRequest{Name: name})
		return err
	}
	commit := func(r git.CommitRequest) error { _, err := g.Commit(ctx, alice, box, r); return err }
	push := func(r git.PushRequest) error { _, err := g.Push(ctx, alice, box, r); return err }
	pull := func(r git.PullRequest) error { _, err := g.Pull(ctx, alice, box, r); return err }
	checkout := func(r git.CheckoutRequest) error { _, err := g.Checkout(ctx, alice, box, r); return err }
	log := func(r git.LogRequest) error { _, err := g.Log(ctx, alice, box, r); return err }
	config := func(key string) error {
		_, err := g.Config(ctx, alice, box, git.ConfigRequest{Key: key})
		return err
	}
	remote := func(name, url string) error {
		_, err := g.AddRemote(ctx, alice, box, git.AddRemoteRequest{Name: name, URL: url})
		return err
	}
	many := make([]string, 1001)
	for i := range many {
		many[i] = "x"
	}
	for field, errs := range map[string][]error{
		"name": {branch(""), branch("-d"), branch("a b"), branch("a..b"), branch("a\nb"), branch("a\x1bb"), branch("\xff"), branch("HEAD"), branch("@"), branch("x.lock"), branch(long), branch("a:b"),
			remote("-x", "../x"), remote("a=b", "../x"), remote("a\nb", "../x"), remote("", "../x"), remote("a.lock", "../x"),
			g.DeleteBranch(ctx, alice, box, git.DeleteBranchRequest{Name: "--all"}), g.RemoveRemote(ctx, alice, box, git.RemoveRemoteRequest{Name: "--x"})},
		"url": {remote("x", "ext::sh -c id"), remote("x", "https://u:p@h/x"), remote("x", "https://u@h/x"), remote("x", "-x"), push(git.PushRequest{URL: "ext::x"}),
			func() error {
				_, err := g.Clone(ctx, alice, box, git.CloneRequest{URL: "https://h/a=b", Remote: login()})
				return err
			}()},
		"message":  {commit(git.CommitRequest{}), commit(git.CommitRequest{Message: " \n"}), commit(git.CommitRequest{Message: "a\x00b"}), commit(git.CommitRequest{Message: strings.Repeat(long, 300)})},
		"author":   {commit(git.CommitRequest{Message: "x", Author: "a"}), commit(git.CommitRequest{Message: "x", Author: "a\nb", Email: "b"}), commit(git.CommitRequest{Message: "x", Author: "a <b>", Email: "b"})},
		"email":    {commit(git.CommitRequest{Message: "x", Author: "a", Email: "a>"})},
		"remote":   {push(git.PushRequest{Name: "--upload-pack=x"}), push(git.PushRequest{Name: "https://h/x"}), pull(git.PullRequest{Name: "-x"})},
		"branch":   {push(git.PushRequest{Branch: "--force"}), push(git.PushRequest{Branch: "a:b"}), pull(git.PullRequest{Branch: "+x:y"}), func() error { _, err := g.Init(ctx, alice, box, git.InitRequest{Branch: "-x"}); return err }()},
		"to":       {push(git.PushRequest{To: "-x"})},
		"delete":   {push(git.PushRequest{Delete: true})},
		"mode":     {pull(git.PullRequest{Mode: "--no-ff"}), func() error { _, err := g.Reset(ctx, alice, box, git.ResetRequest{Mode: "x"}); return err }()},
		"target":   {checkout(git.CheckoutRequest{}), checkout(git.CheckoutRequest{Target: "--orphan"}), checkout(git.CheckoutRequest{Target: "a..b"}), checkout(git.CheckoutRequest{Target: "-", Create: true}), func() error { _, err := g.Reset(ctx, alice, box, git.ResetRequest{Target: "--hard"}); return err }()},
		"start":    {checkout(git.CheckoutRequest{Target: "x", Start: "y"}), checkout(git.CheckoutRequest{Target: "x", Create: true, Start: "--x"})},
		"detach":   {checkout(git.CheckoutRequest{Target: "x", Create: true, Detach: true})},
		"revision": {log(git.LogRequest{Revision: "--output=x"}), log(git.LogRequest{Revision: "^x"}), log(git.LogRequest{Revision: "a..b"}), log(git.LogRequest{Revision: "a\nb"}), log(git.LogRequest{Revision: ":/x"})},
		"limit":    {log(git.LogRequest{Limit: 1001}), log(git.LogRequest{Limit: -1})},
		"skip":     {log(git.LogRequest{Skip: -1})},
		"files": {log(git.LogRequest{Files: []string{""}}), log(git.LogRequest{Files: many}), g.Add(ctx, alice, box, git.AddRequest{}), g.Add(ctx, alice, box, git.AddRequest{All: true, Files: []string{"x"}}), g.Add(ctx, alice, box, git.AddRequest{Files: []string{"a\x00b"}}), g.Restore(ctx, alice, box, git.RestoreRequest{}), func() error {
			_, err := g.Reset(ctx, alice, box, git.ResetRequest{Mode: "hard", Files: []string{"x"}})
			return err
		}()},
		"source":    {g.Restore(ctx, alice, box, git.RestoreRequest{Files: []string{"x"}, Source: "--x"})},
		"untracked": {func() error { _, err := g.Status(ctx, alice, box, git.StatusRequest{Untracked: "x"}); return err }()},
		"key":       {config(""), config("user"), config("-x.y"), config("a.b\nc"), config("a.b=c"), config("a." + long + ".b"), config("a.b.-c")},
		"scope":     {g.UnsetConfig(ctx, alice, box, git.ConfigRequest{Key: "a.b", Scope: "worktree"})},
		"value":     {g.SetConfig(ctx, alice, box, git.SetConfigRequest{ConfigRequest: git.ConfigRequest{Key: "a.b"}, Value: "a\x00b"})},
		"ca":        {push(git.PushRequest{Remote: git.Remote{CA: "x"}}), push(git.PushRequest{Remote: git.Remote{CA: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}}), push(git.PushRequest{Remote: git.Remote{CA: strings.Repeat(long, 10)}})},
		"path": {func() error {
			_, err := g.Status(ctx, alice, box, git.StatusRequest{At: git.At{Path: "a\x00b"}})
			return err
		}()},
		"as_user": {func() error {
			_, err := g.Status(ctx, alice, box, git.StatusRequest{At: git.At{User: "0 0"}})
			return err
		}()},
		"timeout_seconds": {func() error {
			_, err := g.Status(ctx, alice, box, git.StatusRequest{At: git.At{Timeout: -1}})
			return err
		}()},
	} {
		for i, err := range errs {
			if !fault.Is(err, fault.Invalid) || fault.As(err).Fields[0].Name != field {
				t.Errorf("%s, the request %d: %v", field, i, err)
			}
		}
	}
	if got := h.run("ls -A"); got != "" {
		t.Errorf("there is now %s", got)
	}
}
