// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"sandpit.dev/access"
	"sandpit.dev/git"
)

// Git runs git's commands inside; *git.Service is it. Where git fails, the cause of the error is a *git.Failure.
type Git interface {
	Clone(ctx context.Context, c access.Caller, ref string, r git.CloneRequest) (git.Cloned, error)
	Init(ctx context.Context, c access.Caller, ref string, r git.InitRequest) (git.Initialized, error)
	Status(ctx context.Context, c access.Caller, ref string, r git.StatusRequest) (git.Status, error)
	Log(ctx context.Context, c access.Caller, ref string, r git.LogRequest) (git.Log, error)

	Add(ctx context.Context, c access.Caller, ref string, r git.AddRequest) error
	Commit(ctx context.Context, c access.Caller, ref string, r git.CommitRequest) (git.Committed, error)
	Checkout(ctx context.Context, c access.Caller, ref string, r git.CheckoutRequest) (git.CheckedOut, error)
	Reset(ctx context.Context, c access.Caller, ref string, r git.ResetRequest) (git.CheckedOut, error)
	Restore(ctx context.Context, c access.Caller, ref string, r git.RestoreRequest) error

	Push(ctx context.Context, c access.Caller, ref string, r git.PushRequest) (git.Pushed, error)
	Pull(ctx context.Context, c access.Caller, ref string, r git.PullRequest) (git.Pulled, error)

	Branches(ctx context.Context, c access.Caller, ref string, r git.BranchesRequest) (git.BranchList, error)
	CreateBranch(ctx context.Context, c access.Caller, ref string, r git.CreateBranchRequest) (git.Branch, error)
	DeleteBranch(ctx context.Context, c access.Caller, ref string, r git.DeleteBranchRequest) error
	Remotes(ctx context.Context, c access.Caller, ref string, at git.At) ([]git.RemoteRepository, error)
	AddRemote(ctx context.Context, c access.Caller, ref string, r git.AddRemoteRequest) (git.RemoteRepository, error)
	RemoveRemote(ctx context.Context, c access.Caller, ref string, r git.RemoveRemoteRequest) error
	Config(ctx context.Context, c access.Caller, ref string, r git.ConfigRequest) (string, error)
	SetConfig(ctx context.Context, c access.Caller, ref string, r git.SetConfigRequest) error
	UnsetConfig(ctx context.Context, c access.Caller, ref string, r git.ConfigRequest) error
}
