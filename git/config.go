// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
)

// ConfigRequest is about one value of git's configuration.
type ConfigRequest struct {
	At
	Key   string // as user.name
	Scope string // of ConfigScopes; empty: what holds, for reading, and local for writing
}

// SetConfigRequest sets a value, in the place of all that there are.
type SetConfigRequest struct {
	ConfigRequest
	Value string
}

// ConfigScopes returns the scopes: of the repository, of the user, of the image.
func ConfigScopes() []string { return []string{"local", "global", "system"} }

// configKey is a section, maybe a subsection of any text, and a name.
var configKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*(\.[^\x00\n]+)?\.[A-Za-z][A-Za-z0-9-]*$`)

const (
	maxConfigKey   = 512
	maxConfigValue = 8 << 10
)

func (r *ConfigRequest) check(k *check.Fields) {
	if len(r.Key) > maxConfigKey || !utf8.ValidString(r.Key) || !configKey.MatchString(r.Key) {
		k.Bad("key", "%q is not a valid key: a section and a name, as user.name", shown(r.Key))
	}
	if r.Scope != "" && !slices.Contains(ConfigScopes(), r.Scope) {
		k.Bad("scope", "%q is none of local, global, system", shown(r.Scope))
	}
}

// Config returns a value.
func (s *Service) Config(ctx context.Context, c access.Caller, ref string, r ConfigRequest) (string, error) {
	var k check.Fields
	r.check(&k)
	j, err := s.begin(&k, c, ref, r.At, "reading "+shown(r.Key))
	if err != nil {
		return "", err
	}
	args := []string{"config", "--null"}
	if r.Scope != "" {
		args = append(args, "--"+r.Scope)
	}
	out, err := j.run(ctx, command{args: append(args, "--get", r.Key), plain: true})
	if f := failureOf(err); f != nil && f.ExitCode == 1 {
		return "", j.told(meaning{ReasonNoValue, fault.NotFound, "set it, or see another scope"}, "there is no value")
	}
	value, _, _ := strings.Cut(out.text, "\x00")
	return strings.ToValidUTF8(value, "\ufffd"), err
}

// SetConfig sets a value. It is kept in a file inside, and is no place for credentials.
func (s *Service) SetConfig(ctx context.Context, c access.Caller, ref string, r SetConfigRequest) error {
	var k check.Fields
	r.check(&k)
	if len(r.Value) > maxConfigValue || !utf8.ValidString(r.Value) || strings.IndexByte(r.Value, 0) >= 0 {
		k.Bad("value", "is not text of at most %d bytes", maxConfigValue)
	}
	return s.changeConfig(ctx, &k, c, ref, r.ConfigRequest, "setting ", "--replace-all", r.Key, r.Value)
}

// UnsetConfig removes all values of a key.
func (s *Service) UnsetConfig(ctx context.Context, c access.Caller, ref string, r ConfigRequest) error {
	var k check.Fields
	r.check(&k)
	return s.changeConfig(ctx, &k, c, ref, r, "removing ", "--unset-all", r.Key)
}

func (s *Service) changeConfig(ctx context.Context, k *check.Fields, c access.Caller, ref string, r ConfigRequest, doing string, args ...string) error {
	if r.Scope == "" {
		r.Scope = "local"
	}
	j, err := s.begin(k, c, ref, r.At, doing+shown(r.Key))
	if err != nil {
		return err
	}
	_, err = j.run(ctx, command{args: append([]string{"config", "--" + r.Scope}, args...)})
	if f := failureOf(err); f != nil && f.ExitCode == 5 && args[0] == "--unset-all" {
		return j.told(meaning{ReasonNoValue, fault.NotFound, "see another scope"}, "there is no value")
	}
	return err
}
