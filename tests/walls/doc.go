// Package walls holds no code: its tests guard the rules of the house that no compiler knows. Each test names the rule
// that it guards; a rule with exceptions lists them with their reasons.
package walls
