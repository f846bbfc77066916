// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"maps"
	"slices"
	"strings"

	"sandpit.dev/sandbox"
)

// backend has what runs sandboxes, and what they may do there.
func (v *sandboxdVariables) backend() {
	r := &v.config.Runtimes
	switch b := v.getenv("SANDBOX_BACKEND"); b {
	case "":
	case r.Docker.Name(), r.Kubernetes.Name():
		r.Names = append([]string{b}, slices.DeleteFunc(slices.Clone(r.Names), func(name string) bool { return name == b })...)
	default:
		v.refuse("SANDBOX_BACKEND", "%q is no backend: docker has sandboxes on an Engine of Docker or Podman, kubernetes in pods of a cluster, and without the variable they are on this host itself", sandbox.Clip(b, 40))
	}
	v.cluster()
	if yes, set := v.boolean("SANDBOX_NO_NEW_PRIVILEGES"); set && !yes {
		v.refuse("SANDBOX_NO_NEW_PRIVILEGES", "no program inside ever gets new privileges, and this cannot be switched off; a command that needs root asks for it by as_user")
	}
	if yes, set := v.boolean("AUTO_BUILD_SANDBOX_IMAGE"); set {
		v.config.PrebuildImage = yes
	}
	v.capabilities()
}

// cluster has where pods are and what they are called. Its servers look for the pod's own account first, and then for a kubeconfig, which auto does, too.
func (v *sandboxdVariables) cluster() {
	k := &v.config.Kubernetes
	either := func(names ...string) (name, value string) {
		for _, name := range names {
			if value := v.getenv(name); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	space, namespace := either("KUBERNETES_SANDBOX_NAMESPACE", "K8S_SANDBOX_NAMESPACE")
	called, container := either("KUBERNETES_SANDBOX_CONTAINER_NAME", "K8S_SANDBOX_CONTAINER_NAME")
	prefixed, prefix := either("KUBERNETES_SANDBOX_LABEL_PREFIX")
	if r := &v.config.Runtimes; !slices.Contains(r.Names, r.Kubernetes.Name()) && !r.Kubernetes.Wanted() && v.getenv("SANDPIT_RUNTIMES") == "" && v.getenv("SANDPIT_KUBERNETES_KUBECONFIG") == "" {
		for _, name := range []string{space, called, prefixed} {
			if name != "" {
				v.ignore(name, "this server has no sandboxes in pods: SANDBOX_BACKEND=kubernetes, or runtimes in the file, has it have some")
			}
		}
		return
	}
	if namespace != "" {
		k.Namespace = namespace
	}
	if container != "" && container != podContainer() {
		v.ignore(called, "the container of a pod is called "+podContainer())
	}
	if prefix != "" {
		k.Labels = maps.Clone(k.Labels)
		if k.Labels == nil {
			k.Labels = map[string]string{}
		}
		k.Labels[prefix+"/role"] = "sandbox"
	}
}

// capabilities compares those that sandboxes are to have with those that they have, which cannot be changed.
func (v *sandboxdVariables) capabilities() {
	strict, set := v.boolean("SANDBOX_CAPS_STRICT")
	bypass, _ := v.boolean("SANDBOX_CAPS_BYPASS_CHECK")
	strict = (strict || !set) && !bypass
	have, known := capabilities()
	var added []string
	names := func(variable string) (out []string) {
		for _, name := range strings.Split(v.getenv(variable), ",") {
			name = strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(name)), "CAP_")
			switch {
			case name == "":
			case name == "ALL" || slices.Contains(known, name):
				out = append(out, name)
			case strict:
				v.refuse(variable, "%q is no capability", sandbox.Clip(name, 40))
			default:
				v.ignore(variable, sandbox.Clip(name, 40)+" is no capability")
			}
		}
		return out
	}
	for _, name := range names("SANDBOX_CAP_ADD") {
		if !slices.Contains(have, name) {
			v.refuse("SANDBOX_CAP_ADD", "%s is not given: a sandbox's root has %s at most", name, strings.Join(have, ", "))
		}
		added = append(added, name)
	}
	for _, name := range names("SANDBOX_CAP_DROP") {
		if name != "ALL" && slices.Contains(have, name) && !slices.Contains(added, name) {
			v.refuse("SANDBOX_CAP_DROP", "%s is what a sandbox's root always has, so that apt, pip and the agent work; commands of the user have none", name)
		}
	}
}

// ignore notes a variable that has no effect here, with the reason.
func (v *sandboxdVariables) ignore(name, why string) {
	v.config.withoutEffect = append(v.config.withoutEffect, name+": "+why)
}

// meaningless notes variables that have no effect here.
func (v *sandboxdVariables) meaningless() {
	for name, why := range map[string]string{
		"SANDBOX_DOCKERFILE_PATH": "no image is made of a Dockerfile by itself; sandpit image build makes one",
		"REAPER_INTERVAL_MS":      "each sandbox's end is at its own time, without rounds",
		"DENYLIST_ENABLED":        "isolation does not depend on the words of a command",
		"DENYLIST_PATTERNS":       "isolation does not depend on the words of a command",
		"DEBUG_UI_ENABLED":        "there is no such page",
	} {
		if v.getenv(name) != "" {
			v.ignore(name, why)
		}
	}
	if r := &v.config.Runtimes; !slices.Contains(r.Names, r.Docker.Name()) && !r.Docker.Wanted() && v.getenv("SANDPIT_RUNTIMES") == "" && v.getenv("SANDPIT_DOCKER_HOST") == "" {
		for _, name := range []string{"DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"} {
			if v.getenv(name) != "" {
				v.ignore(name, "it says where the Engine of the docker runtime is, and this server has no such runtime: SANDBOX_BACKEND=docker, or runtimes in the file, gives it one")
			}
		}
	}
	slices.Sort(v.config.withoutEffect)
}
