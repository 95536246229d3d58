/** An audit report for people; `cargo xtask audit` prints the same. */
export function auditText(report) {
  const lines = [
    `verdict: ${report.verdict}`,
    `${report.items} items, ${report.records} records, ${report.signatures} signatures verified`,
  ];
  for (const { subscription, mode, verified, unverified } of report.assurance) {
    lines.push(`subscription ${subscription} (${mode}): ${verified} records verified, ${unverified} not`);
  }
  for (const { item, code, rule, detail } of report.findings) {
    lines.push(`finding: ${item === null ? "no item" : `item ${item}`}: ${code} (${rule}): ${detail}`);
  }
  for (const { code, items } of report.evidence) lines.push(`evidence: items ${items[0]} and ${items[1]}: ${code}`);
  for (const text of report.not_checked) lines.push(`not checked: ${text}`);
  return lines.join("\n");
}
