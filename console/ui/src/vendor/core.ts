// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// What the console uses of Preact, in one place: the chunk that has it holds no code of ours.
export { Component, render } from "preact";
// TSX is made of these.
export { Fragment, jsx, jsxs } from "preact/jsx-runtime";
export type { ComponentChildren, JSX, VNode } from "preact";
export { useEffect, useId, useRef } from "preact/hooks";
export { batch, computed, effect, signal, useComputed, useSignal } from "@preact/signals";
export type { Signal } from "@preact/signals";
