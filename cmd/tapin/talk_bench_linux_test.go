package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tapin/bench/timing"
	"tapin/internal/chat/telegram/bottest"
)

// BenchmarkTalk measures what an owner waits for, with a Bot API on this
// machine: from a text to its characters in the field, from the start of a
// hand-off to its message, from "screenshot" to the photo.
func BenchmarkTalk(b *testing.B) {
	k := newTalk(b)
	k.up()
	k.must("agent", "POST", "/session/start", map[string]any{"url": k.site.URL + "/bench", "screenshot": false})

	b.Run("announcement", func(b *testing.B) {
		report(b, func(i int) (time.Duration, func()) {
			began := time.Now()
			id := k.handsOver(map[string]any{"reason": "login", "task": fmt.Sprintf("measure %d", i)})
			m := k.reads(fmt.Sprintf("trying to measure %d on", i))
			return m.At.Sub(began), func() {
				k.must("agent", "POST", "/handoff/"+id+"/cancel", map[string]any{})
				time.Sleep(1100 * time.Millisecond) // a chat takes one message a second in the long run
			}
		})
	})
	k.handsOver(map[string]any{"reason": "login", "task": "hold still", "timeout_ms": 3_600_000})
	k.reads("trying to hold still on")
	b.Run("relay", func(b *testing.B) {
		report(b, func(i int) (time.Duration, func()) {
			mark := fmt.Sprintf("[%d/%d]", b.N, i)
			began := time.Now()
			k.bot.Say(theOwner, "type: "+mark, 0)
			for {
				if _, value := k.site.field(); strings.Contains(value, mark) {
					return time.Since(began), nil
				}
				if time.Since(began) > 20*time.Second { // short: it is a measurement, which counts what came
					b.Fatal("it was never typed")
				}
				time.Sleep(time.Millisecond)
			}
		})
	})
	b.Run("screenshot", func(b *testing.B) {
		report(b, func(int) (time.Duration, func()) {
			began := time.Now()
			asked := k.bot.Say(theOwner, "screenshot", 0)
			m := k.sees("a photo", func(m bottest.Message) bool { return m.ID > asked && len(m.Photo) > 0 })
			return m.At.Sub(began), nil
		})
	})
}

// report measures one thing again and again, and tells median and p95. What is to be
// done after each, if anything, is not part of it.
func report(b *testing.B, once func(i int) (took time.Duration, after func())) {
	var played timing.Rounds[time.Duration]
	for i := 0; b.Loop(); i++ {
		played.Begin()
		took, after := once(i)
		played.Add("tapin", took)
		played.End()
		if after != nil {
			after()
		}
	}
	counted := played.Counted()["tapin"]
	b.ReportMetric(timing.Milliseconds(timing.Quantile(counted, 0.5)), "p50_ms")
	b.ReportMetric(timing.Milliseconds(timing.Quantile(counted, 0.95)), "p95_ms")
}
