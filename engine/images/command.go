// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

// Command is what an image says is to be run in it.
type Command struct {
	Argv []string
	Cwd  string // "": it names none
}

// Command returns the image's own command for a sandbox: its entry point, followed by words, or where there are none
// by the words that the image has. A sandbox whose image names nothing to run is fault.Invalid.
func (k *Keeper) Command(ctx context.Context, c access.Caller, ref string, words []string) (Command, error) {
	ctx, leave, err := k.engine.Enter(ctx, c, access.SandboxesWrite)
	if err != nil {
		return Command{}, err
	}
	defer leave()
	s, err := k.engine.Get(ctx, c, ref)
	if err != nil {
		return Command{}, err
	}
	img, err := k.store.FindDigest(s.Image, s.ImageDigest)
	if err != nil {
		return Command{}, err
	}
	if img.Other == nil {
		return Command{}, fault.InvalidField("image_command", "the image %q has no command of its own: it is one of the catalogue", s.Image).
			WithRemedy("say what is to be run; images that were pulled or imported can have a command of their own")
	}
	conf := img.Other.Config
	if len(words) == 0 {
		words = conf.Cmd
	}
	out := Command{Argv: slices.Concat(conf.Entrypoint, words), Cwd: conf.WorkingDir}
	if len(out.Argv) == 0 {
		return Command{}, fault.InvalidField("image_command", "the image %q has neither an entry point nor a command", s.Image).
			WithRemedy("say what is to be run")
	}
	return out, nil
}
