// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"slices"

	"sandpit.dev/access"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/service"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/settings"
)

// settings returns who keeps them, for a caller who may change them: others learn nothing of the server's.
func (a *API) settings(c *httpapi.Call) (service.Settings, error) {
	if err := c.Caller.Require(access.ServerAdmin); err != nil {
		return nil, err
	}
	if a.Settings == nil {
		return nil, fault.New(fault.Unsupported, "the settings of this server cannot be changed by call")
	}
	return a.Settings, nil
}

func (a *API) listSettings(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.SettingList, error) {
	s, err := a.settings(c)
	if err != nil {
		return v1.SettingList{}, err
	}
	all, err := s.List(ctx, c.Caller)
	return settingList(all), err
}

func (a *API) getConfiguration(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.Configuration, error) {
	s, err := a.settings(c)
	if err != nil {
		return v1.Configuration{}, err
	}
	all, err := s.Configuration(ctx, c.Caller)
	out := v1.Configuration{Items: make([]v1.ConfiguredValue, 0, len(all))}
	for _, k := range all {
		out.Items = append(out.Items, v1.ConfiguredValue{Key: k.Key, Value: k.Value, Secret: k.Secret, Source: string(k.Source), Setting: k.Setting})
	}
	return out, err
}

type updateSettings struct{ Body v1.UpdateSettings }

func (a *API) updateSettings(ctx context.Context, c *httpapi.Call, in *updateSettings) (v1.SettingList, error) {
	s, err := a.settings(c)
	if err != nil {
		return v1.SettingList{}, err
	}
	unset := in.Body.Unset
	in.Body.Unset = nil
	patch, err := patchOf(in.Body)
	if err != nil {
		return v1.SettingList{}, err
	}
	for _, name := range unset {
		if _, ok := patch[name]; ok {
			return v1.SettingList{}, fault.InvalidField("unset", "%s is set by the same request", name)
		}
		patch[name] = json.RawMessage("null")
	}
	all, err := s.Change(ctx, c.Caller, patch)
	return settingList(all), err
}

// patchOf returns the fields of a body that are there.
func patchOf(body any) (patch map[string]json.RawMessage, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return patch, json.Unmarshal(text, &patch)
}

func settingList(all []settings.Setting) v1.SettingList {
	out := v1.SettingList{Items: make([]v1.Setting, 0, len(all))}
	for _, s := range all {
		one := v1.Setting{Name: s.Name, About: s.About, Value: s.Value, Source: string(s.Source), Holds: string(s.Holds), Otherwise: s.Otherwise, ChangedBy: s.ChangedBy}
		if !s.ChangedAt.IsZero() {
			at := s.ChangedAt.UTC()
			one.ChangedAt = &at
		}
		out.Items = append(out.Items, one)
	}
	return out
}

func (a *API) getSandboxSettings(ctx context.Context, c *httpapi.Call, _ *httpapi.NoInput) (v1.SandboxSettings, error) {
	s, err := a.settings(c)
	if err != nil {
		return v1.SandboxSettings{}, err
	}
	all, err := s.List(ctx, c.Caller)
	if err != nil {
		return v1.SandboxSettings{}, err
	}
	return a.sandboxSettings(ctx, c, all)
}

type updateSandboxSettings struct{ Body v1.UpdateSandboxSettings }

// gatewayNames are our names of the settings that the MCP Gateway calls otherwise.
func gatewayNames() map[string]string {
	return map[string]string{
		"default_max_per_user": "max_sandboxes", "idle_timeout_seconds": "idle_timeout_seconds", "stopped_retention_seconds": "retention_seconds", "db_default_image": "default_image",
		"warm_pool_enabled": "pools_enabled", "env_allowlist": "allowed_variables", "db_active_images": "allowed_images",
	}
}

func (a *API) updateSandboxSettings(ctx context.Context, c *httpapi.Call, in *updateSandboxSettings) (v1.SandboxSettings, error) {
	s, err := a.settings(c)
	if err != nil {
		return v1.SandboxSettings{}, err
	}
	asked, err := patchOf(in.Body)
	if err != nil {
		return v1.SandboxSettings{}, err
	}
	patch := make(map[string]json.RawMessage, len(asked))
	for theirs, raw := range asked {
		if theirs == "db_default_image" && string(raw) == `""` {
			raw = json.RawMessage("null")
		}
		patch[gatewayNames()[theirs]] = raw
	}
	all, err := s.Change(ctx, c.Caller, patch)
	if err != nil {
		return v1.SandboxSettings{}, renamed(err, gatewayNames())
	}
	if on := in.Body.WarmPoolEnabled; on != nil && *on {
		if err := a.somePool(ctx, c); err != nil {
			return v1.SandboxSettings{}, err
		}
	}
	return a.sandboxSettings(ctx, c, all)
}

// warmPool is how many sandboxes a pool keeps that is made since somebody wants one.
const warmPool = 2

// somePool has the default image's pool keep some sandboxes, if no pool keeps any.
func (a *API) somePool(ctx context.Context, c *httpapi.Call) error {
	info, err := a.Server.Info(ctx, c.Caller)
	if err != nil || keepsSome(info.Pools) || a.Keeper == nil {
		return err
	}
	_, _, err = a.Keeper.ChangePool(ctx, c.Caller, images.PoolChange{Min: new(warmPool)})
	return err
}

func keepsSome(all []prewarm.PoolInfo) bool {
	return slices.ContainsFunc(all, func(p prewarm.PoolInfo) bool { return p.Max > 0 })
}

// renamed has an error speak of fields by the names that its caller used.
func renamed(err error, theirs map[string]string) error {
	var sp httpapi.Spellings
	for name, ours := range theirs {
		sp.Wrote(ours, name)
	}
	return sp.Rename(err)
}

func (a *API) sandboxSettings(ctx context.Context, c *httpapi.Call, all []settings.Setting) (v1.SandboxSettings, error) {
	info, err := a.Server.Info(ctx, c.Caller)
	if err != nil {
		return v1.SandboxSettings{}, err
	}
	out := v1.SandboxSettings{ProviderType: info.Default}
	for _, s := range all {
		switch s.Name {
		case "max_sandboxes":
			out.DefaultMaxPerUser, _ = s.Value.(int64)
		case "idle_timeout_seconds":
			out.IdleTimeoutSeconds, _ = s.Value.(int64)
		case "retention_seconds":
			out.StoppedRetentionSeconds, _ = s.Value.(int64)
		case "pools_enabled":
			on, _ := s.Value.(bool)
			out.WarmPoolEnabled = on && keepsSome(info.Pools)
		case "default_image":
			out.ConfigFallbackImage, _ = s.Otherwise.(string)
			if image, ok := s.Value.(string); ok && s.Source == settings.Set {
				out.DBDefaultImage = &image
			}
		case "allowed_variables":
			out.EnvAllowlist, _ = s.Value.([]string)
		case "allowed_images":
			out.DBActiveImages, _ = s.Value.([]string)
		}
	}
	return out, nil
}
