// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	"sandpit.dev/api/daytona/wire"
)

// Clients before 0.167 run code by a command line. Where the code imports matplotlib, that has a program around the code, which
// needs matplotlib 3.10 inside, and prints each figure as a line of JSON that the client reads. Such code is run as newer
// clients have it run, and the figures are printed in the same form.

// chartMark begins the lines of output that these clients take for artifacts.
const chartMark = "dtn_artifact_k39fd2:"

const encoded = `([A-Za-z0-9+/=]+)`

var (
	olderCommand  = regexp.MustCompile(`^sh -c "((?:export \w+=\$\(echo '[A-Za-z0-9+/=]*' \| base64 -d\);)*) ?echo '` + encoded + `' \| base64 -d \| sh"$`)
	olderVariable = regexp.MustCompile(`export (\w+)=\$\(echo '([A-Za-z0-9+/=]*)' \| base64 -d\);`)
	olderPython   = regexp.MustCompile(`^\s*sh -c 'python3 -u -c "exec\(__import__\(\\"base64\\"\)\.b64decode\(\\"` + encoded + `\\"\)\.decode\(\)\)"([\w ./:=@%+,-]*)'\s*$`)
	olderCode     = regexp.MustCompile(`user_code = base64\.b64decode\("` + encoded + `"\)\.decode\(\)`)
)

// codeThatDraws returns the code that a command line of an older client runs, if that may draw; ok is false for any other.
func codeThatDraws(command string) (run wire.RunCode, ok bool) {
	outer := olderCommand.FindStringSubmatch(command)
	if outer == nil {
		return run, false
	}
	for _, v := range olderVariable.FindAllStringSubmatch(outer[1], -1) {
		value, err := base64.StdEncoding.DecodeString(v[2])
		if err != nil {
			return run, false
		}
		if run.Envs == nil {
			run.Envs = make(map[string]string)
		}
		run.Envs[v[1]] = string(value)
	}
	inner, err := base64.StdEncoding.DecodeString(outer[2])
	if err != nil {
		return run, false
	}
	python := olderPython.FindSubmatch(inner)
	if python == nil {
		return run, false
	}
	program, err := base64.StdEncoding.DecodeString(string(python[1]))
	if err != nil || !bytes.Contains(program, []byte(chartMark)) {
		return run, false
	}
	own := olderCode.FindSubmatch(program)
	if own == nil {
		return run, false
	}
	code, err := base64.StdEncoding.DecodeString(string(own[1]))
	run.Code, run.Argv = string(code), strings.Fields(string(python[2]))
	return run, err == nil
}

// printed returns what a run of code has written, with its figures as lines that older clients read.
func printed(ran wire.CodeRan) (wire.Executed, error) {
	out := wire.Executed{ExitCode: ran.ExitCode, Result: ran.Result}
	if ran.Artifacts == nil {
		return out, nil
	}
	if out.Result != "" && !strings.HasSuffix(out.Result, "\n") {
		out.Result += "\n"
	}
	for _, chart := range ran.Artifacts.Charts {
		line, err := json.Marshal(wire.Artifact{Type: "chart", Value: chart})
		if err != nil {
			return out, err
		}
		out.Result += chartMark + string(line) + "\n"
	}
	return out, nil
}
