package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// rows are the programs in the order of the tables, with what they do; those of the mode update, then those
// of the mode git, then those of the modes message, policy and history.
var rows = []struct{ program, title string }{
	{setters, "(a)  setters: read, set, write with kyaml"},
	{tagboat, "(b)  tagboat update"},
	{tagboatAgain, "(b2) tagboat update, nothing to change"},
	{grep, "(c)  grep -rlF, finding the marked files"},
	{overwrite, "(d)  writing the changed files only"},

	{clone, "(a)  git clone --depth 1"},
	{cloneBare, "(a2) the same, --bare"},
	{gogit, "(b)  go-git: clone, set, add, commit, push"},
	{cold, "(c)  tagboat run, without state"},
	{warm, "(d)  tagboat run, one policy changed"},
	{warmAll, "(d2) tagboat run, all policies changed"},
	{idle, "(e)  tagboat run, nothing changed"},
	{lsRemote, "(e2) git ls-remote"},
	{push, "(f)  git ls-remote + git push"},

	{detailed, "(a)  preset:detailed, 1,000 changes"},
	{conventional, "(b)  preset:conventional, 1,000 changes"},
	{short, "(c)  preset:summary, 1,000 changes"},
	{handlebars, "(d)  (a) in handlebars"},
	{start, "(e)  preset:summary on the sample"},

	{semver, "(a)  10,000 tags: semver, every reason printed"},
	{alphabetical, "(b)  the same: alphabetical"},
	{numerical, "(c)  the same: a filter, numerical"},
	{oneTag, "(d)  one tag: what starting costs"},

	{log, "(a)  git log --first-parent -m -p -U0"},
	{history, "(b)  tagboat history"},
	{historyJSON, "(b2) tagboat history -o json"},
}

// spread is the smallest, the middle and the largest of some figures.
type spread struct{ min, median, max float64 }

func spreadOf(values []float64) spread {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return spread{sorted[0], median, sorted[len(sorted)-1]}
}

func (s spread) format(decimals int) string {
	return fmt.Sprintf("%.*f / %.*f / %.*f", decimals, s.min, decimals, s.median, decimals, s.max)
}

// printFigures prints the costs of the programs, and their ratios.
func printFigures(output io.Writer, records []record) error {
	table := tabwriter.NewWriter(output, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "min / median / max\tCPU s\twall s\tpeak MB\truns\tstatus")
	cpu := make(map[string]float64)
	for _, row := range rows {
		runs := runsOf(records, row.program)
		if len(runs) == 0 {
			continue
		}
		seconds := spreadOf(project(runs, func(r record) float64 { return r.Figures.CPUSeconds }))
		wall := spreadOf(project(runs, func(r record) float64 { return r.Figures.WallSeconds }))
		peak := spreadOf(project(runs, func(r record) float64 { return r.Figures.PeakMegabytes }))
		status := spreadOf(project(runs, func(r record) float64 { return float64(r.Figures.ExitStatus) }))
		cpu[row.program] = seconds.median
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%.0f\n",
			row.title, seconds.format(3), wall.format(3), peak.format(1), len(runs), status.max)
	}
	fmt.Fprintln(table)
	ratio := func(title string, upper, lower float64) {
		if upper > 0 && lower > 0 {
			fmt.Fprintf(table, "CPU %s\t%.2f\n", title, upper/lower)
		}
	}
	floor := cpu[grep] + cpu[overwrite]
	ratio("(a) / (c + d), of medians", cpu[setters], floor)
	ratio("(b) / (c + d), of medians", cpu[tagboat], floor)
	ratio("(b2) / (c), of medians", cpu[tagboatAgain], cpu[grep])
	ratio("(a) / (b), of medians", cpu[setters], cpu[tagboat])
	ratio("(c) / (a2), of medians", cpu[cold], cpu[cloneBare])
	ratio("(b) / (d), of medians", cpu[gogit], cpu[warm])
	ratio("(d) / (f), of medians", cpu[warm], cpu[push])
	ratio("(e) / (e2), of medians", cpu[idle], cpu[lsRemote])
	ratio("(b) / (a), of medians", cpu[history], cpu[log])
	fmt.Fprintln(table)
	return table.Flush()
}

// printVerdicts prints how exact the updates were, for each program its worst run.
func printVerdicts(output io.Writer, records []record) error {
	if !slices.ContainsFunc(records, func(each record) bool { return each.Verdict != nil }) {
		return nil
	}
	table := tabwriter.NewWriter(output, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "worst of all runs\tbyte-exact\tother files touched\tunreadable files named")
	for _, row := range rows {
		runs := runsOf(records, row.program)
		if len(runs) == 0 || runs[0].Verdict == nil {
			continue
		}
		worst := *runs[0].Verdict
		for _, run := range runs[1:] {
			worst.Exact = min(worst.Exact, run.Verdict.Exact)
			worst.OthersTouched = max(worst.OthersTouched, run.Verdict.OthersTouched)
			worst.UnreadableNamed = min(worst.UnreadableNamed, run.Verdict.UnreadableNamed)
		}
		fmt.Fprintf(table, "%s\t%d of %d\t%d\t%d of %d\n",
			row.title, worst.Exact, worst.ToChange, worst.OthersTouched, worst.UnreadableNamed, worst.Unreadable)
	}
	return table.Flush()
}

func runsOf(records []record, program string) []record {
	var runs []record
	for _, each := range records {
		if each.Program == program {
			runs = append(runs, each)
		}
	}
	return runs
}

func project(records []record, figure func(record) float64) []float64 {
	values := make([]float64, len(records))
	for i, each := range records {
		values[i] = figure(each)
	}
	return values
}
