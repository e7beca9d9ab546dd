"""Which number a question asks for: "how many", "average" or "highest" with the name that follows."""

from __future__ import annotations

from dataclasses import replace

from lakehouse.agent.elements import Element
from lakehouse.agent.lexicon import Name
from lakehouse.agent.parser.cursor import is_flag
from lakehouse.agent.parser.groups import GroupParser
from lakehouse.agent.reading import Field
from lakehouse.agent.refusal import Refusal
from lakehouse.agent.semantics import NUMBER, TIME, Metric

AGGREGATE_WORDS = {"sum": "total", "avg": "average", "max": "highest", "min": "lowest", "median": "median"}


class MetricParser(GroupParser):
    """Parses metrics."""

    def _resolve_head(self, name: Name, element: Element) -> None:
        draft = self.draft
        if is_flag(element):
            self._bare_field(self._field_of(element), element)
            return
        if self._earlier_heads:
            self._resolve_heads(name, element)
            return
        following = self._peek(())
        if following is not None and following.kind == "name" and _is_counted(following.name):
            self._check_compound(following)
        if draft.counts:
            metric = self._counted(name, element)
        elif draft.aggregate:
            metric = self._aggregate_of(name, element, draft.aggregate)
        else:
            metric = self._extreme_of(name, element)
        is_of_column = metric is not None and not draft.of_groups and name.field is not None
        self._head = metric.aggregate if metric and is_of_column and (draft.aggregate or draft.is_extreme_value) else ""
        draft.counts, draft.aggregate = False, ""
        if draft.extreme:
            draft.descending, draft.extreme = draft.extreme == "desc", ""
            draft.limit = draft.limit or int(bool(draft.subjects))
        if metric is not None:
            self._add_metric(metric)

    def _resolve_heads(self, name: Name, element: Element) -> None:
        """`highest and lowest fare`: each head with the same name."""
        draft = self.draft
        last = (
            Element("aggregate", draft.aggregate, 0, 0) if draft.aggregate else Element("extreme", draft.extreme, 0, 0)
        )
        heads, self._earlier_heads = [*self._earlier_heads, last], []
        for head in heads:
            draft.aggregate = head.detail if head.kind == "aggregate" else ""
            draft.extreme = head.detail if head.kind == "extreme" else ""
            draft.descending = None
            self._resolve_head(name, element)
            self._is_listing = True
            if draft.of_groups or draft.subjects:
                raise Refusal(f'I cannot take both of "{self._text(element)}" at once.', ["Ask for one of them."])

    def _waits_for(self, head: Element) -> bool:
        """Whether a head shares its name with the next one: "highest and lowest fare"."""
        following = self._elements[self._place : self._place + 2]
        waits = [other.kind for other in following] in (["and", "aggregate"], ["and", "extreme"])
        if waits:
            self._earlier_heads.append(head)
        return waits

    def _check_compound(self, element: Element) -> None:
        """Two names side by side, as in "customer orders", may be one thing, the other, or both."""
        before = self._elements[self._elements.index(element) - 1]
        if before.end == element.start and before.kind in ("name", "grain") and not is_flag(before):
            raise Refusal(f'"{self._text(before)} {self._text(element)}" may mean several things.')

    def _counted(self, name: Name, element: Element) -> Metric | None:
        draft, near = self.draft, name.field
        if near and (draft.distinct or not (name.metric or name.is_entity)):
            if draft.aggregate and near.dimension.kind == NUMBER and not draft.distinct:
                return self._aggregate_of(name, element, draft.aggregate)  # "average number of passengers"
            metric = self._counted_values(near, element)
            if metric is None:
                return None
        else:
            metric = name.metric or (self._lexicon.entity.count if name.is_entity else None)
        if draft.distinct and not self._lexicon.entity.key:
            raise Refusal(f"I do not know what makes {self._text(element)} different from each other.")
        draft.distinct = False
        if metric is None or metric.aggregate not in ("count", "sum"):
            raise Refusal(f'I cannot count "{self._text(element)}".')
        if draft.aggregate in ("avg", "min", "max", "median"):
            draft.of_groups = draft.aggregate
        if draft.extreme and not draft.subjects and not draft.groups:
            draft.of_groups = "max" if draft.extreme == "desc" else "min"
        return metric

    def _counted_values(self, near: Field, element: Element) -> Metric | None:
        """ "how many tickers": the different values; "how many passengers": their sum, if the layer says so."""
        text, is_distinct = self._text(element), self.draft.distinct
        if near.dimension.kind == NUMBER and not is_distinct:
            if near.dimension.aggregate == "sum" and not near.path:
                return self._aggregated(near, "sum")
            choices = [f"total {text}", f"how many different {text}"]
            raise Refusal(f'"How many {text}" may be a sum or a count.', choices)
        whole = self._whole_days(near)
        if whole.dimension.kind == TIME and not whole.grain:
            raise Refusal(f'I cannot count "{text}".', ["how many days …"])
        self._bare_field(whole, element)
        self.draft.distinct = False
        return None

    def _whole_days(self, near: Field) -> Field:
        return replace(near, grain="day") if near.dimension.kind == TIME and near.dimension.type == "date" else near

    def _aggregate_of(self, name: Name, element: Element, aggregate: str) -> Metric:
        metric = name.metric or (self._lexicon.entity.count if name.is_entity and not name.field else None)
        if metric and (metric.aggregate == aggregate or (aggregate == "sum" and metric.adds_up)):
            return metric
        if name.field and name.field.dimension.kind == NUMBER and not name.field.path:
            if aggregate != "sum" and (metric or (name.field.dimension.aggregate == "sum" and self._is_per_time())):
                return self._either(name, element, aggregate)
            return self._aggregated(name.field, aggregate)
        if metric and metric.adds_up:
            self.draft.of_groups = aggregate
            return metric
        raise Refusal(f'I cannot take the {AGGREGATE_WORDS[aggregate]} of "{self._text(element)}".')

    def _is_per_time(self) -> bool:
        """Whether the question has "per day" or "daily"."""
        pairs = zip(self._elements, self._elements[1:], strict=False)
        is_per = any(left.kind == "by" and left.detail == "per" and right.kind == "grain" for left, right in pairs)
        return is_per or any(element.kind == "each" for element in self._elements)

    def _either(self, name: Name, element: Element, aggregate: str) -> Metric:
        """A name of a sum and of its column: the average of the column, unless "per day" follows, which may mean both."""
        assert name.field is not None
        if any(other.kind in ("by", "each") for other in self._elements):
            word, text = AGGREGATE_WORDS[aggregate], self._text(element)
            raise Refusal(
                f'"{word} {text}" of each group, or of the totals of the groups?',
                [f"{word} {name.field.dimension.name} by …", f"{word} of the daily total"],
            )
        return self._aggregated(name.field, aggregate)

    def _extreme_of(self, name: Name, element: Element) -> Metric:
        draft = self.draft
        aggregate = "max" if draft.extreme == "desc" else "min"
        text = self._text(element)
        if draft.subjects:
            draft.limit = draft.limit or 1
            if (metric := self._metric_of(name)) is not None:
                return metric
        elif name.metric and name.metric.adds_up and not name.field:
            draft.of_groups = aggregate
            return name.metric
        if name.field and name.field.dimension.kind == NUMBER and not name.field.path and not name.metric:
            if name.field.dimension.aggregate and self._is_per_time():
                return self._either(name, element, aggregate)
            draft.is_extreme_value = True
            return self._aggregated(name.field, aggregate)
        if name.field and name.field.dimension.kind == NUMBER and not name.field.path and not draft.subjects:
            return self._either(name, element, aggregate)
        raise Refusal(f"I do not know which {text} you mean.", [f"which day had the highest {text}"])

    def _aggregated(self, near: Field, aggregate: str) -> Metric:
        dimension = near.dimension
        return Metric(f"{aggregate}_{dimension.name}", f"{aggregate}({dimension.sql})", unit=dimension.unit)

    def _metric_of(self, name: Name) -> Metric | None:
        """The metric that a name alone means."""
        near = name.field
        if name.metric or name.is_entity:
            return name.metric or self._lexicon.entity.count
        return (
            self._aggregated(near, near.dimension.aggregate)
            if near and near.dimension.aggregate and not near.path
            else None
        )

    def _add_metric(self, metric: Metric) -> None:
        if metric in self.draft.metrics:
            return
        if self.draft.metrics and not self._is_listing:
            raise Refusal(f'"{self.draft.metrics[-1].name}" and "{metric.name}" stand side by side.', ["… and …"])
        self.draft.metrics.append(metric)


def _is_counted(name: Name) -> bool:
    """Whether a name stands for a number of its own, and not for a condition on what is before it."""
    near = name.field
    return name.is_entity or name.metric is not None or (near is not None and near.dimension.kind == NUMBER)
